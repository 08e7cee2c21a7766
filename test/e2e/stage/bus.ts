import { writeFileSync } from 'node:fs'
import { BUS_CONFIG } from '../private-bus.ts'
import type { Stage } from './stage.ts'

/**
 * Stands in for systemd, which is not PID 1 here: starts and stops the one service that the documents name, with the real
 * daemon. Whatever else is asked of it fails.
 */
const SYSTEMCTL = (root: string): string => `
here=${root}/service
running() { [ -s $here/pid ] && kill -0 "$(cat $here/pid)" 2>/dev/null; }
owned() {
  dbus-send --system --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.NameHasOwner \\
    string:org.puzzled1 2>/dev/null | grep -q true
}
start() {
  running && return 0
  setsid env PUZZLED_FAILPOINTS="$(cat $here/failpoints 2>/dev/null)" puzzled >$here/log 2>&1 </dev/null &
  echo $! >$here/pid
  for attempt in $(seq 200); do
    owned && return 0
    running || break
    sleep 0.05
  done
  echo 'Job for puzzled.service failed.' >&2
  cat $here/log >&2
  return 1
}
stop() {
  running || return 0
  kill "$(cat $here/pid)"
  while running; do sleep 0.05; done
}
[ "$2" = puzzled ] || { echo "systemctl $*: not on this stage" >&2; exit 64; }
case $1 in
  start) start ;;
  stop) stop ;;
  restart) stop && start ;;
  kill) kill -KILL "$(cat $here/pid)"; while running; do sleep 0.05; done ;;
  is-active) running && echo active ;;
  *) echo "systemctl $*: not on this stage" >&2; exit 64 ;;
esac`

/** A bus and a daemon, as on a machine on which it is installed. Ends with the stage. */
export function serve(stage: Stage): void {
  stage.folder('service')
  stage.program('systemctl', SYSTEMCTL(stage.root))
  stage.mount(['-t', 'tmpfs', '-o', 'mode=755', 'none'], '/run')
  stage.environment.DBUS_SYSTEM_BUS_ADDRESS = `unix:path=${stage.path('service/socket')}`
  writeFileSync(stage.path('service/bus.conf'), BUS_CONFIG(stage.path('service/socket')))
  const bus = ['--fork', '--nopidfile', '--print-pid', `--config-file=${stage.path('service/bus.conf')}`]
  const pid = Number(stage.asRoot('dbus-daemon', ...bus))
  stage.atEnd(() => {
    stage.asRoot('systemctl', 'stop', 'puzzled')
    process.kill(pid)
  })
  stage.asRoot('systemctl', 'start', 'puzzled')
}
