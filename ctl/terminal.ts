import { colours, type Paint, plain } from './render/paint.ts'

/** Colours only for a person: a terminal, and `NO_COLOR` (any value) not set. */
export function paintFor(stream: NodeJS.WriteStream): Paint {
  return stream.isTTY === true && (process.env.NO_COLOR ?? '') === '' && process.env.TERM !== 'dumb'
    ? colours
    : plain
}

/** Waits until the text is handed to the kernel; a reader that closed the pipe early is not an error. */
export function write(stream: NodeJS.WritableStream, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => {
      if (error === null || error === undefined || (error as NodeJS.ErrnoException).code === 'EPIPE')
        resolve()
      else reject(error)
    })
  })
}
