import { spawnSync } from 'node:child_process'
import type { Missing } from '../tier/needs.ts'
import type { Identity, PrivateBus } from './private-bus.ts'

/** Debian's, not one that a tool manager put first in PATH: only that one has the module. */
const PYTHON = '/usr/bin/python3'

/** A client that knows nothing of us: types come from the introspection data, as in any language's D-Bus library. */
const CLIENT = `
import dbus, json, sys
def plain(value):
    if isinstance(value, dbus.Boolean): return bool(value)
    if isinstance(value, (dbus.Array, tuple)): return [plain(each) for each in value]
    if isinstance(value, dbus.Dictionary): return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, float): return float(value)
    if isinstance(value, int): return int(value)
    return None if value is None else str(value)
path, face, member, args = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
try:
    target = dbus.SystemBus().get_object('org.puzzled1', path)
    answer = {'value': plain(getattr(target, member)(*args, dbus_interface=face, timeout=60))}
except dbus.exceptions.DBusException as error:
    answer = {'error': (error.get_dbus_name() or '').split('.')[-1], 'message': error.get_dbus_message()}
print(json.dumps(answer))
`

export const pythonDbus: Missing =
  spawnSync(PYTHON, ['-c', 'import dbus'], { stdio: 'ignore' }).status === 0
    ? undefined
    : 'needs the package python3-dbus'

export interface Answer {
  value?: unknown
  /** The last word of the error's name. */
  error?: string
  message?: string
}

/** One call of one method by a program of that user. */
export async function pythonCall(
  here: PrivateBus,
  who: Identity,
  target: { path: string; face: string },
  member: string,
  ...args: unknown[]
): Promise<Answer> {
  const words = [target.path, target.face, member, JSON.stringify(args)]
  const { out, err, status } = await here.exec(who, [PYTHON, '-c', CLIENT, ...words])
  if (status !== 0) throw new Error(`The client failed: ${err}`)
  return JSON.parse(out) as Answer
}
