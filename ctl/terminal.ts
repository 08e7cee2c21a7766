import { errnoOf, PuzzledError } from '../daemon/lib/errors.ts'
import { colours, type Paint, plain } from './render/paint.ts'

/** Colours only for a person: a terminal, and `NO_COLOR` (any value) not set. */
export function paintFor(stream: NodeJS.WriteStream): Paint {
  return stream.isTTY === true && (process.env.NO_COLOR ?? '') === '' && process.env.TERM !== 'dumb'
    ? colours
    : plain
}

/** A reader that has seen enough (`| head`) closes the pipe early, and that is not an error. */
const isClosedReader = (error: NodeJS.ErrnoException): boolean =>
  error.code === 'EPIPE' || error.code === 'ERR_STREAM_DESTROYED'

const isFull = ({ code }: NodeJS.ErrnoException): boolean => code === 'ENOSPC' || code === 'EDQUOT'

/** Without a listener, Node ends the process with a stack trace when the reader of its output goes away. */
export function outliveReaders(...streams: readonly NodeJS.WritableStream[]): void {
  for (const stream of streams)
    stream.on('error', (error: NodeJS.ErrnoException) => {
      // Whoever wrote is told of a full disk, or that it is open for reading only, and says so in a sentence.
      if (!isClosedReader(error) && errnoOf(error) === undefined) throw error
    })
}

function unwritten(error: Error): Error {
  const errno = errnoOf(error)
  return errno === undefined ? error : new PuzzledError('kernel-refused', `Cannot write the output: ${errno}`)
}

/** Waits until the text is handed to the kernel. */
export function write(stream: NodeJS.WritableStream, text: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => {
      if (error === null || error === undefined || isClosedReader(error)) resolve()
      else if (isFull(error))
        reject(new PuzzledError('no-space', 'Cannot write the output: no space is left where it goes'))
      else reject(unwritten(error))
    })
  })
}
