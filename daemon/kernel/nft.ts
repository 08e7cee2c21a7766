import { PuzzledError } from '../lib/errors.ts'
import { loadLibrary } from './ffi.ts'
import { withLowSocket } from './low-descriptors.ts'

type Context = unknown

interface Library {
  nft_ctx_new(flags: number): Context
  nft_ctx_free(context: Context): void
  nft_ctx_output_set_flags(context: Context, flags: number): void
  nft_ctx_buffer_output(context: Context): number
  nft_ctx_buffer_error(context: Context): number
  nft_ctx_get_output_buffer(context: Context): string | null
  nft_ctx_get_error_buffer(context: Context): string | null
  nft_run_cmd_from_buffer(context: Context, text: string): number
}

/** `NFT_CTX_OUTPUT_JSON` and `NFT_CTX_DEFAULT` of nftables/libnftables.h. */
const OUTPUT_JSON = 1 << 4
const DEFAULT = 0

let library: Library | undefined

function nftables(): Library {
  if (library !== undefined) return library
  const handle = loadLibrary('libnftables.so.1', 'libnftables1')
  // SAFETY: signatures as in nftables/libnftables.h of 1.0; contexts are opaque pointers that are only passed back.
  library = {
    nft_ctx_new: handle.func('void *nft_ctx_new(uint32_t flags)'),
    nft_ctx_free: handle.func('void nft_ctx_free(void *ctx)'),
    nft_ctx_output_set_flags: handle.func('void nft_ctx_output_set_flags(void *ctx, unsigned int flags)'),
    nft_ctx_buffer_output: handle.func('int nft_ctx_buffer_output(void *ctx)'),
    nft_ctx_buffer_error: handle.func('int nft_ctx_buffer_error(void *ctx)'),
    nft_ctx_get_output_buffer: handle.func('const char *nft_ctx_get_output_buffer(void *ctx)'),
    nft_ctx_get_error_buffer: handle.func('const char *nft_ctx_get_error_buffer(void *ctx)'),
    nft_run_cmd_from_buffer: handle.func('int nft_run_cmd_from_buffer(void *ctx, const char *buf)'),
  } as Library
  return library
}

/**
 * libnftables in the network namespace of the calling thread, for as long as `work` lasts: its netlink socket must have a
 * low descriptor, and those are few.
 */
export const withNft = <T>(work: (nft: Pick<Nft, 'run'>) => T): T =>
  withLowSocket(
    () => new Nft(),
    (nft) => nft.close(),
    work,
  )

/** Made by `withNft` only. */
class Nft {
  #context: Context | undefined
  readonly #library = nftables()

  constructor() {
    // SAFETY: the context is owned by this object and freed once, in close().
    const context = this.#library.nft_ctx_new(DEFAULT)
    if (context === null) throw new PuzzledError('kernel-refused', 'Cannot create an nftables context')
    this.#library.nft_ctx_output_set_flags(context, OUTPUT_JSON)
    this.#library.nft_ctx_buffer_output(context)
    this.#library.nft_ctx_buffer_error(context)
    this.#context = context
  }

  /** Applies one command document as one transaction: all of it or nothing. */
  run(commands: unknown): unknown {
    if (this.#context === undefined) throw new PuzzledError('internal', 'The nftables context is closed')
    // SAFETY: synchronous; the text outlives the call; the buffers belong to the context and are copied by koffi.
    const result = this.#library.nft_run_cmd_from_buffer(this.#context, JSON.stringify(commands))
    const output = this.#library.nft_ctx_get_output_buffer(this.#context) ?? ''
    const error = this.#library.nft_ctx_get_error_buffer(this.#context) ?? ''
    if (result !== 0)
      throw new PuzzledError(
        'kernel-refused',
        `nftables refused the rules: ${error.trim().split('\n')[0] ?? ''}`,
      )
    return output.trim() === '' ? undefined : (JSON.parse(output) as unknown)
  }

  close(): void {
    const context = this.#context
    this.#context = undefined
    // SAFETY: freed once: the field was cleared first.
    if (context !== undefined) this.#library.nft_ctx_free(context)
  }
}
