import { createHash } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import Module from 'node:module'
import { basename, dirname, join, resolve } from 'node:path'
import { Script, constants as vmConstants } from 'node:vm'

/** Builds that came and went leave files; more than this is several of them. */
const MAX_FILES = 400

/** SHA-256 of the source and of what was compiled from it, in front of the latter. */
const SEAL_BYTES = 32

/**
 * Keeps what V8 compiled, so that the next command does not compile it again (a third of a short run). What is in such a
 * file is executed: it is only read from a directory, and only when it is a file, that belong to this user and that
 * nobody else can write. V8 refuses what another version or other flags wrote, but not what a power cut or a bad disk
 * made of it (that ends the process, or runs as something else), and of the source it compares the length alone: so each
 * file begins with a seal over both. To be called at the end of the process, because only what
 * has run by then is compiled: it writes what is new, and lets go of the loader.
 */
export function keepCompiled(code: string, cache: string | undefined): () => void {
  const directory =
    cache === undefined ? undefined : usable(join(cache, `${process.version}-${process.arch}`))
  if (directory === undefined) return () => undefined
  const fresh: { file: string; content: string; script: Script }[] = []
  const loaded = new Map<string, NodeJS.Module>()
  const others = Module.createRequire(join(code, 'chunk.js'))
  const run = (content: string, path: string, module: NodeJS.Module): unknown => {
    const file = join(directory, basename(path))
    const { script, isNew } = compile(content, path, unsealed(readOwn(file), content))
    if (isNew) fresh.push({ file, content, script })
    const wrapper = script.runInThisContext() as Wrapper
    return wrapper.call(module.exports, module.exports, require, module, path, code)
  }
  // Chunks name each other by their files: looking for packages, extensions and links first costs more than reading them.
  const require = Object.assign((id: string): unknown => {
    const path = resolve(code, id)
    if (!id.startsWith('./') || dirname(path) !== code) return others(id)
    const known = loaded.get(path)
    if (known !== undefined) return known.exports
    const module = new Module(path)
    loaded.set(path, module)
    run(readFileSync(path, 'utf8'), path, module)
    return module.exports
  }, others)
  const prototype = Module.prototype as unknown as { _compile: Compile }
  const original = prototype._compile
  prototype._compile = function (content, path) {
    if (dirname(path) !== code) return original.call(this, content, path)
    loaded.set(path, this)
    return run(content, path, this)
  }
  return () => {
    prototype._compile = original
    if (fresh.length > 0) makeRoom(directory)
    for (const { file, content, script } of fresh) write(file, sealed(script.createCachedData(), content))
  }
}

function compile(
  content: string,
  filename: string,
  cachedData: Buffer | undefined,
): { script: Script; isNew: boolean } {
  const script = new Script(Module.wrap(content), {
    filename,
    ...(cachedData === undefined ? {} : { cachedData }),
    importModuleDynamically: vmConstants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  })
  return { script, isNew: cachedData === undefined || script.cachedDataRejected === true }
}

type Wrapper = (
  this: unknown,
  exports: unknown,
  require: NodeJS.Require,
  module: NodeJS.Module,
  filename: string,
  dirname: string,
) => unknown
type Compile = (this: NodeJS.Module, content: string, filename: string) => unknown

/** Policies know it by this name wherever it is: what an agent left there would run outside with the next command. */
const USER_FOLDER = 'puzzled-compiled'

/** Root's is a fixed place: a variable of the caller's environment must not choose it. */
export function compileCache(environment: NodeJS.ProcessEnv, uid: number | undefined): string | undefined {
  if (environment.PUZZLED_COMPILE_CACHE === '0') return undefined
  if (uid === 0) return '/var/cache/puzzled'
  const { XDG_CACHE_HOME, HOME } = environment
  if (XDG_CACHE_HOME?.startsWith('/') === true) return join(XDG_CACHE_HOME, USER_FOLDER)
  return HOME?.startsWith('/') === true ? join(HOME, '.cache', USER_FOLDER) : undefined
}

/** A cache that cannot be used is no error: everything is compiled, as without one. */
function usable(directory: string): string | undefined {
  try {
    for (const path of [dirname(directory), directory]) {
      makeIfAbsent(path)
      if (!isOwn(lstatSync(path)) || !lstatSync(path).isDirectory()) return undefined
    }
    return directory
  } catch {
    // A read-only disk, a home that does not exist: the same as no cache.
    return undefined
  }
}

function makeIfAbsent(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

const isOwn = ({ uid, mode }: { uid: number; mode: number }): boolean =>
  uid === process.geteuid?.() && (mode & 0o022) === 0

function readOwn(file: string): Buffer | undefined {
  let fd: number | undefined
  try {
    fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW)
    const stat = fstatSync(fd)
    return stat.isFile() && isOwn(stat) ? readFileSync(fd) : undefined
  } catch {
    // Not there yet, or not readable: compiled anew.
    return undefined
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

const sealOf = (compiled: Uint8Array, source: string): Buffer =>
  createHash('sha256').update(source).update('\0').update(compiled).digest()

const sealed = (compiled: Buffer, source: string): Buffer =>
  Buffer.concat([sealOf(compiled, source), compiled])

function unsealed(bytes: Buffer | undefined, source: string): Buffer | undefined {
  if (bytes === undefined) return undefined
  const compiled = bytes.subarray(SEAL_BYTES)
  return sealOf(compiled, source).equals(bytes.subarray(0, SEAL_BYTES)) ? compiled : undefined
}

/**
 * Whole or not at all, unless the power goes: it is not synced, the seal tells. Two processes that write the same file
 * write the same.
 */
function write(file: string, bytes: Buffer): void {
  const temporary = `${file}.${process.pid}`
  try {
    writeFileSync(temporary, bytes, { mode: 0o600, flag: 'wx' })
    renameSync(temporary, file)
  } catch {
    discard(temporary)
  }
}

/** Everything goes: what is still in use is written again by the next commands. */
function makeRoom(directory: string): void {
  const names = namesIn(directory)
  if (names.length > MAX_FILES) for (const name of names) discard(join(directory, name))
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    // Removed while the command ran. An error here would be the exit status of a command that has succeeded.
    return []
  }
}

function discard(path: string): void {
  try {
    unlinkSync(path)
  } catch {
    // It was never made, or the disk refuses everything: there is nothing more to do about a cache.
  }
}
