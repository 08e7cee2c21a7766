import { isExecutable } from '../tier/executable.ts'
import type { Missing } from '../tier/needs.ts'

/** Types into a program that runs in a terminal of 33 by 111: waits for a text, types, waits, types, … */
const TYPIST = `
import fcntl, json, os, pty, re, struct, sys, termios
steps = json.loads(sys.argv[1])
pid, master = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 33, 111, 0, 0))
    os.execvp(sys.argv[2], sys.argv[2:])
shown, seen = b'', 0
while True:
    while len(steps) > 0:
        found = re.search(steps[0].encode(), shown[seen:])
        if not found:
            break
        seen += found.end()
        if len(steps) > 1:
            os.write(master, steps[1].encode().decode('unicode_escape').encode())
        steps = steps[2:]
    try:
        part = os.read(master, 4096)
    except OSError:
        break
    if not part:
        break
    shown += part
_, status = os.waitpid(pid, 0)
os.write(1, shown + b'status %d' % os.waitstatus_to_exitcode(status))
`

/** Debian's: one that a tool manager put first in PATH is not for every user. */
const PYTHON = '/usr/bin/python3'
export const noTypist: Missing = isExecutable(PYTHON) ? undefined : `needs ${PYTHON}`

/**
 * A command at a terminal of 33 by 111, with somebody who waits for each expression in what it shows and then types what
 * follows it. It prints all that was shown, and `status N` at the end.
 */
export const typing = (steps: readonly string[], ...command: readonly string[]): readonly string[] => [
  ...[PYTHON, '-c', TYPIST, JSON.stringify(steps)],
  ...command,
]
