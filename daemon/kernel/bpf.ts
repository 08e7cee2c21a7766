import { join } from 'node:path'
import { packageRoot } from '../lib/assets.ts'
import { ffi, KernelError, type LibraryHandle, loadLibrary } from './ffi.ts'

/**
 * libbpf: objects that were compiled ahead of time are loaded, attached to LSM hooks and closed again. Addresses are
 * numbers here; only this file knows what they point at.
 */
type Pointer = bigint | number

interface Libbpf {
  open(path: string, options: null): Pointer
  close(object: Pointer): void
  load: { async(object: Pointer, done: (error: unknown, result: number) => void): void }
  findProgram(object: Pointer, name: string): Pointer
  findMap(object: Pointer, name: string): Pointer
  mapDescriptor(map: Pointer): number
  attach(program: Pointer): Pointer
  destroyLink(link: Pointer): number
  lookup(descriptor: number, key: Buffer, value: Buffer): number
  update(descriptor: number, key: Buffer, value: Buffer, flags: number): number
}

let library: Libbpf | undefined

function libbpf(): Libbpf {
  library ??= bind(loadLibrary('libbpf.so.1', 'libbpf1'))
  return library
}

function bind(handle: LibraryHandle): Libbpf {
  const func = (signature: string) => handle.func(signature) as unknown
  // SAFETY: a null printer is documented to silence the library, which would write to our stderr otherwise.
  ;(func('void *libbpf_set_print(void *)') as (printer: null) => unknown)(null)
  return {
    open: func('uintptr_t bpf_object__open_file(const char *path, void *options)'),
    close: func('void bpf_object__close(uintptr_t object)'),
    load: func('int bpf_object__load(uintptr_t object)'),
    findProgram: func('uintptr_t bpf_object__find_program_by_name(uintptr_t object, const char *name)'),
    findMap: func('uintptr_t bpf_object__find_map_by_name(uintptr_t object, const char *name)'),
    mapDescriptor: func('int bpf_map__fd(uintptr_t map)'),
    attach: func('uintptr_t bpf_program__attach_lsm(uintptr_t program)'),
    destroyLink: func('int bpf_link__destroy(uintptr_t link)'),
    lookup: func('int bpf_map_lookup_elem(int map, const void *key, void *value)'),
    update: func('int bpf_map_update_elem(int map, const void *key, const void *value, uint64_t flags)'),
  } as Libbpf
}

/** The compiled object of `bpf/<name>.bpf.c` for this architecture. */
export const bpfObjectFile = (name: string): string =>
  join(packageRoot(), 'bpf', 'prebuilt', process.arch, `${name}.o`)

/** One loaded object with its programs and maps. Closing it detaches what was attached through it. */
export class BpfObject {
  readonly #object: Pointer
  readonly #links: Pointer[] = []

  private constructor(object: Pointer) {
    this.#object = object
  }

  /** Opens and loads; the verifier runs on a thread of the pool, because it reads the kernel's type information (5 MB). */
  static async load(file: string): Promise<BpfObject> {
    // SAFETY: the path is copied by koffi; the result is owned by this object until close().
    const pointer = libbpf().open(file, null)
    if (Number(pointer) === 0) throw new KernelError('bpf_object__open_file', ffi().errno() as number, [file])
    // SAFETY: the object is used by this one call only until it is done.
    const result = await settled<number>((done) => libbpf().load.async(pointer, done))
    if (result < 0) {
      // SAFETY: a failed object is still ours to close.
      libbpf().close(pointer)
      throw new KernelError('bpf_object__load', -result, [file])
    }
    return new BpfObject(pointer)
  }

  /** Attaches an LSM program; it is called from now on until close(). */
  attachLsm(program: string): void {
    // SAFETY: the program belongs to the object, which is open.
    const pointer = libbpf().findProgram(this.#object, program)
    if (Number(pointer) === 0) throw new KernelError('bpf_object__find_program_by_name', 2, [program])
    // SAFETY: as above; synchronous, so that errno is that of this thread.
    const link = libbpf().attach(pointer)
    if (Number(link) === 0)
      throw new KernelError('bpf_program__attach_lsm', ffi().errno() as number, [program])
    this.#links.push(link)
  }

  /** The descriptor of a map; it belongs to the object. */
  map(name: string): number {
    // SAFETY: the map belongs to the object, which is open.
    const pointer = libbpf().findMap(this.#object, name)
    if (Number(pointer) === 0) throw new KernelError('bpf_object__find_map_by_name', 2, [name])
    // SAFETY: as above.
    return libbpf().mapDescriptor(pointer)
  }

  close(): void {
    // SAFETY: every link and the object are released once; they are not used afterwards.
    for (const link of this.#links.splice(0)) libbpf().destroyLink(link)
    libbpf().close(this.#object)
  }
}

/** The value of a key, or undefined. `size` is the map's value size. */
export function lookupElement(map: number, key: Buffer, size: number): Buffer | undefined {
  const value = Buffer.alloc(size)
  // SAFETY: key and value have the sizes of the map, which the caller states.
  return libbpf().lookup(map, key, value) === 0 ? value : undefined
}

export function updateElement(map: number, key: Buffer, value: Buffer): void {
  // SAFETY: key and value have the sizes of the map, which the caller states.
  const result = libbpf().update(map, key, value, 0)
  if (result < 0) throw new KernelError('bpf_map_update_elem', -result, [map])
}

function settled<Result>(start: (done: (error: unknown, result: Result) => void) => void): Promise<Result> {
  return new Promise((resolve, reject) => {
    start((error, result) => {
      if (error === null || error === undefined) resolve(result)
      else reject(error)
    })
  })
}
