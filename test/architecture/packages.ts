/** What package.json and package-lock.json must not say. Both are judged as parsed JSON. */

interface Manifest {
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  overrides?: Record<string, string>
}

interface Lock {
  packages: Record<string, { version?: string; hasInstallScript?: boolean; resolved?: string }>
}

/**
 * Packages whose install script was read. koffi's (`cnoke`) looks for the prebuilt library that lies in the package
 * itself and compiles with the local toolchain if there is none; it has no code that downloads one.
 */
const READ_INSTALL_SCRIPTS: Readonly<Record<string, string>> = {
  'node_modules/koffi': '3.3.4',
}

export function inexactVersions(manifest: Manifest): string[] {
  const groups = [
    manifest.dependencies,
    manifest.devDependencies,
    manifest.optionalDependencies,
    manifest.overrides,
  ]
  return groups.flatMap((group) =>
    Object.entries(group ?? {})
      .filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))
      .map(([name, version]) => `${name} ${version} is not an exact version`),
  )
}

/** Install scripts that nobody has read, and read ones that have a new version since. */
export function unreadInstallScripts(lock: Lock): string[] {
  return Object.entries(lock.packages).flatMap(([path, entry]) => {
    if (entry.hasInstallScript !== true) return []
    const read = READ_INSTALL_SCRIPTS[path]
    if (read === undefined) return [`${path} runs an install script`]
    return read === entry.version ? [] : [`${path} ${entry.version}: install script read at ${read}`]
  })
}

/** The lock names packages and digests; where they come from is the business of the machine that installs. */
export const namedHosts = (lock: Lock): string[] =>
  Object.entries(lock.packages)
    .filter(([, entry]) => entry.resolved !== undefined && !entry.resolved.startsWith('file:'))
    .map(([path, entry]) => `${path} is resolved to ${entry.resolved}`)
