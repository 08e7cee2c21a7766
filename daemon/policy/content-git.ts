// pure
import type { ContentFinding } from './content-finding.ts'

/**
 * Keys of a repository's configuration that cannot name a program or move the repository. Everything else is a
 * finding: git gains keys that run commands faster than a list of bad ones could follow.
 */
const HARMLESS = [
  /^core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|autocrlf|eol|safecrlf|symlinks|abbrev|quotepath|untrackedcache|compression|whitespace|sharedrepository|protecthfs|protectntfs|commitgraph|multipackindex|longpaths|preloadindex|splitindex)$/,
  /^remote\..*\.(url|pushurl|fetch|push|tagopt|prune|mirror|gh-resolved|promisor|partialclonefilter|skipdefaultupdate)$/,
  /^branch\..*\.(remote|pushremote|merge|rebase|description|mergeoptions|vscode-merge-base|gh-merge-base|github-pr-owner-number|autosetuprebase)$/,
  /^branch\.(autosetupmerge|autosetuprebase|sort)$/,
  /^user\.(name|email|useconfigonly)$/,
  /^(pull\.(rebase|ff)|push\.(default|autosetupremote|followtags)|fetch\.(prune|prunetags|writecommitgraph)|merge\.(ff|conflictstyle|renamelimit)|rebase\.(autosquash|autostash|updaterefs)|init\.defaultbranch|rerere\.(enabled|autoupdate)|commit\.gpgsign|tag\.gpgsign|tag\.sort|status\.\w+|color\.[\w.]+|column\.\w+|advice\.\w+|gc\.\w+|pack\.\w+|index\.\w+|feature\.\w+|maintenance\.(auto|strategy)|log\.(date|decorate)|diff\.(algorithm|renames|renamelimit|colormoved|noprefix|mnemonicprefix))$/,
  /^submodule\.(active|recurse|fetchjobs|.*\.(url|active|ignore|shallow|branch))$/,
  /^extensions\.(objectformat|compatobjectformat|refstorage|partialclone|worktreeconfig)$/,
  /^lfs\.(repositoryformatversion|locksverify|.*\.access|.*\.locksverify)$/,
]

export function scanGitConfig(text: string, old: string | undefined): ContentFinding[] {
  const found: ContentFinding[] = []
  const before = new Map(old === undefined ? [] : gitConfigEntries(old).map(({ key, value }) => [key, value]))
  for (const { key, value, line } of gitConfigEntries(text)) {
    const remote = /^(?:remote\..*\.(?:url|pushurl)|submodule\..*\.url)$/.test(key)
    if (!HARMLESS.some((pattern) => pattern.test(key)))
      found.push({ rule: 'git-config-command', message: `line ${line}: "${key}" can run a command` })
    else if (remote && !/^(?:https:\/\/|ssh:\/\/[a-z0-9]|git@[a-z0-9.-]+:|\.{0,2}\/)/i.test(value))
      found.push({ rule: 'git-config-command', message: `line ${line}: "${key}" is no plain URL` })
    else if (remote && before.has(key) && before.get(key) !== value)
      found.push({ rule: 'git-config-remote', message: `line ${line}: "${key}" leads elsewhere than before` })
  }
  return found
}

/** Keys as git sees them: section and name in lower case. What cannot be read is an entry with the key "?". */
export function gitConfigEntries(text: string): { key: string; value: string; line: number }[] {
  const entries: { key: string; value: string; line: number }[] = []
  let section = '?'
  let line = 0
  let continued = false
  for (const raw of text.split('\n')) {
    line++
    const wasContinued = continued
    continued = /(?:^|[^\\])(?:\\\\)*\\\r?$/.test(raw)
    if (wasContinued) continue
    let rest = raw.trim()
    const head = /^\[\s*([A-Za-z0-9.-]+)\s*(?:"((?:[^"\\]|\\.)*)")?\s*\]/.exec(rest)
    if (head !== null) {
      const [all, name = '', sub] = head
      section =
        sub === undefined ? name.toLowerCase() : `${name.toLowerCase()}.${sub.replace(/\\(.)/g, '$1')}`
      // A value may stand behind the header, on the same line.
      rest = rest.slice(all.length).trim()
    }
    if (rest === '' || /^[#;]/.test(rest)) continue
    const pair = /^([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?$/.exec(rest)
    if (pair === null) entries.push({ key: '?', value: rest, line })
    else
      entries.push({
        key: `${section}.${(pair[1] ?? '').toLowerCase()}`,
        value: unquote(pair[2] ?? ''),
        line,
      })
  }
  return entries
}

const unquote = (value: string): string => value.replace(/"/g, '').trim()

/** Drivers that are built into git, or the one that everybody installs. */
const BUILT_IN =
  /^(?:lfs|text|union|binary|ours|ada|bash|bibtex|cpp|csharp|css|dts|elixir|fortran|fountain|golang|html|java|kotlin|markdown|matlab|objc|pascal|perl|php|python|ruby|rust|scheme|tex)$/

export function scanGitAttributes(text: string): ContentFinding[] {
  const found: ContentFinding[] = []
  text.split('\n').forEach((raw, index) => {
    const [pattern, ...attributes] = raw.trim().split(/\s+/)
    if (pattern === undefined || pattern === '' || pattern.startsWith('#')) return
    for (const attribute of attributes) {
      const driver = /^(filter|diff|merge)=(.*)$/.exec(attribute)
      if (driver !== null && !BUILT_IN.test(driver[2] ?? ''))
        found.push({
          rule: 'git-attributes-driver',
          message: `line ${index + 1}: ${attribute} runs a command when it is configured`,
        })
      // `-diff` and `linguist-generated` take a text out of what reviewers see.
      if (
        /^(?:-diff|-text|binary|linguist-generated(?:=true)?)$/.test(attribute) &&
        /\.(?:[cm]?[jt]sx?|py|rs|go|sh|rb|java|c|h|cpp|ya?ml|toml|rego)$|^\*$/.test(pattern)
      )
        found.push({
          rule: 'git-attributes-hidden',
          message: `line ${index + 1}: ${attribute} hides source files from review`,
        })
    }
  })
  return found
}
