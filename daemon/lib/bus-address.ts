import { spawn } from 'node:child_process'
import { createConnection } from 'node:net'
import { Duplex } from 'node:stream'
import { PuzzledError } from './errors.ts'

/** Connects to the first of the addresses that is of a kind we know: `unix:path=`, `unix:abstract=`, `unixexec:`. */
export function openBusAddress(address: string): Duplex {
  for (const one of address.split(';')) {
    const [family = '', list = ''] = splitOnce(one, ':')
    const values = new Map(list.split(',').map((pair) => splitOnce(pair, '=')))
    const value = (key: string): string | undefined => unescaped(values.get(key))
    const path = value('path')
    const abstract = value('abstract')
    if (family === 'unix' && path !== undefined) return createConnection(path)
    if (family === 'unix' && abstract !== undefined) return createConnection(`\0${abstract}`)
    if (family === 'unixexec' && path !== undefined) return runProgram(path, value)
  }
  throw new PuzzledError('usage', `"${address}" is no address of a bus that can be used`, {
    hint: 'unix:path=/run/dbus/system_bus_socket is the usual one (DBUS_SYSTEM_BUS_ADDRESS).',
  })
}

/** A program whose standard streams are the connection: the bus of another machine over ssh. */
function runProgram(path: string, value: (key: string) => string | undefined): Duplex {
  const args: string[] = []
  for (let next = value('argv1'); next !== undefined; next = value(`argv${args.length + 1}`)) args.push(next)
  const child = spawn(path, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const stream = Duplex.from({ writable: child.stdin, readable: child.stdout })
  child.on('error', (error) => stream.destroy(error))
  return stream
}

function splitOnce(text: string, by: string): [string, string] {
  const at = text.indexOf(by)
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

function unescaped(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const bytes = text.replace(/%([0-9a-f]{2})/gi, (_all, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  return Buffer.from(bytes, 'latin1').toString('utf8')
}
