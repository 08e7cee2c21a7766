import { existsSync, readFileSync } from 'node:fs'
import { jsonText } from '../../json.ts'
import { serviceFiles } from '../../service-files.ts'
import { hasSystemd, unitProperty } from '../../systemctl.ts'
import type { VerbRun } from '../../verb.ts'

/** systemctl's own convention: 3 is "not running". */
const NOT_RUNNING = 3

/** Whether the daemon is installed, current and running. */
export const run: VerbRun = async (context) => {
  const files = serviceFiles()
  const present = files.filter(({ target }) => existsSync(target))
  const stale = present.filter(({ target, content }) => readFileSync(target, 'utf8') !== content)
  const state = hasSystemd() ? unitProperty('puzzled.service', 'ActiveState') : 'no systemd'
  const installed = present.length === 0 ? 'no' : present.length < files.length ? 'in part' : 'yes'
  const report = { installed, state, stale: stale.map(({ target }) => target) }
  const lines = [
    `installed: ${installed}`,
    `state:     ${state}`,
    ...report.stale.map((path) => `changed:   ${path}`),
  ]
  await context.print(context.json ? jsonText(report) : `${lines.join('\n')}\n`)
  return state === 'active' ? 0 : NOT_RUNNING
}
