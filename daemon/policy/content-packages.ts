// pure
import type { ContentFinding } from './content-finding.ts'

/** Scripts that package managers run without being asked. */
const LIFECYCLE = new Set([
  'preinstall',
  'install',
  'postinstall',
  'preprepare',
  'prepare',
  'postprepare',
  'prepublish',
  'prepack',
  'postpack',
  'dependencies',
  'preuninstall',
  'uninstall',
  'postuninstall',
])

type Scripts = ReadonlyMap<string, string>

/** Scripts of `package.json` that are new or changed; lifecycle scripts run on install. */
export function scanManifest(text: string, old: string | undefined): ContentFinding[] {
  const scripts = scriptsOf(text)
  if (scripts === undefined) return [{ rule: 'unreadable', message: 'package.json is not readable as JSON' }]
  const before = old === undefined ? undefined : scriptsOf(old)
  const found: ContentFinding[] = []
  for (const [name, command] of scripts) {
    if (before?.get(name) === command) continue
    const lifecycle = LIFECYCLE.has(name)
    // Without the old content a plain script may have been there all along.
    if (lifecycle || before !== undefined)
      found.push({
        rule: lifecycle ? 'lifecycle-script' : 'script-changed',
        message: `script "${name}" ${before?.has(name) ? 'is changed' : 'is added'}: ${command.slice(0, 200)}`,
      })
  }
  return found
}

function scriptsOf(text: string): Scripts | undefined {
  try {
    const manifest: unknown = JSON.parse(text.replace(/^\ufeff/, ''))
    if (typeof manifest !== 'object' || manifest === null) return undefined
    const { scripts } = manifest as { scripts?: unknown }
    if (typeof scripts !== 'object' || scripts === null) return new Map()
    return new Map(Object.entries(scripts).map(([name, command]) => [name, String(command)]))
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Where each package manager's lock may point without a question: its own public index. */
const LOCKFILES: Readonly<Record<string, readonly string[]>> = {
  'package-lock.json': ['registry.npmjs.org'],
  'npm-shrinkwrap.json': ['registry.npmjs.org'],
  'yarn.lock': ['registry.npmjs.org', 'registry.yarnpkg.com'],
  'pnpm-lock.yaml': ['registry.npmjs.org'],
  'bun.lock': ['registry.npmjs.org'],
  'deno.lock': ['registry.npmjs.org', 'jsr.io', 'deno.land'],
  'cargo.lock': ['github.com/rust-lang/crates.io-index', 'index.crates.io'],
  'poetry.lock': ['pypi.org', 'files.pythonhosted.org'],
  'pdm.lock': ['pypi.org', 'files.pythonhosted.org'],
  'uv.lock': ['pypi.org', 'files.pythonhosted.org'],
  'pipfile.lock': ['pypi.org', 'files.pythonhosted.org'],
  'gemfile.lock': ['rubygems.org'],
  'composer.lock': [
    'api.github.com',
    'github.com',
    'codeload.github.com',
    'repo.packagist.org',
    'packagist.org',
  ],
  'packages.lock.json': ['api.nuget.org'],
  'mix.lock': ['repo.hex.pm', 'hex.pm'],
}

/** In a line of a lock file, URLs of these fields are places that code comes from. */
const SOURCE_LINE = /resolved|tarball|source|url|remote|registry|index|git|path\b/i
const SOURCE_URL = /\b((?:git\+|registry\+|sparse\+)?(?:https?|ssh|git|ftp|file)):(?:\/\/)?([^\s"'),#}\]]+)/g

export function scanLockfile(name: string, text: string): ContentFinding[] {
  const known = LOCKFILES[name]
  if (known === undefined || !Object.hasOwn(LOCKFILES, name)) return []
  const found = new Map<string, ContentFinding>()
  for (const line of text.split('\n')) {
    if (
      !SOURCE_LINE.test(line) ||
      /^\s*"?(?:homepage|funding|support|issues|docs|authors)"?\s*[:=]/.test(line)
    )
      continue
    for (const [, scheme = '', rest = ''] of line.matchAll(SOURCE_URL)) {
      const place = rest.replace(/^[^/@]*@/, '')
      const host = place.split('/', 1)[0] ?? ''
      const shown = place.split('/').slice(0, 2).join('/').slice(0, 120)
      if (known.some((each) => place === each || place.startsWith(`${each}/`))) {
        if (/^(?:http|git|ftp)$/.test(scheme))
          found.set(`plain ${host}`, {
            rule: 'lockfile-plain-http',
            message: `packages of ${host} would come over ${scheme}`,
          })
      } else found.set(shown, { rule: 'lockfile-host', message: `packages would come from ${shown}` })
    }
  }
  return [...found.values(), ...missingIntegrity(name, text)]
}

/** An entry of npm's lock that names an archive and not its digest can be another archive tomorrow. */
function missingIntegrity(name: string, text: string): ContentFinding[] {
  if (name !== 'package-lock.json' && name !== 'npm-shrinkwrap.json') return []
  let lock: {
    packages?: Record<string, { resolved?: unknown; integrity?: unknown; link?: unknown; inBundle?: unknown }>
  }
  try {
    lock = JSON.parse(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return [{ rule: 'unreadable', message: `${name} is not readable as JSON` }]
  }
  return Object.entries(lock?.packages ?? {})
    .filter(
      ([path, entry]) =>
        path !== '' &&
        typeof entry?.resolved === 'string' &&
        entry.integrity === undefined &&
        entry.link !== true,
    )
    .map(([path]) => ({ rule: 'lockfile-integrity', message: `${path} has no digest` }))
}
