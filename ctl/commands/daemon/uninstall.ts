import { jsonText } from '../../json.ts'
import { removeServiceFiles, serviceFiles } from '../../service-files.ts'
import { administer, requireSystemdRoot, unitProperty } from '../../systemctl.ts'
import type { VerbRun } from '../../verb.ts'

/** Stops the daemon and removes what `install` wrote. Branches, audit log and configuration stay. */
export const run: VerbRun = async (context) => {
  requireSystemdRoot('uninstall')
  if (unitProperty('puzzled.service', 'LoadState') === 'loaded')
    administer('systemctl', 'disable', '--now', '--quiet', 'puzzled.service', 'puzzled-cleanup.timer')
  stopEmptySlice()
  const removed = removeServiceFiles(serviceFiles())
  administer('systemctl', 'daemon-reload')
  administer('systemctl', 'reload', 'dbus.service')
  const text = `${removed.map((path) => `removed ${path}\n`).join('')}The store stays where it is.\n`
  await context.print(context.json ? jsonText({ removed }) : text)
  return 0
}

/** Agents that an engine without the daemon started live in the slice too: it goes when nobody does. */
function stopEmptySlice(): void {
  const scopes = administer('systemctl', 'list-units', '--no-legend', 'puzzle-*.scope').trim()
  if (scopes === '' && unitProperty('puzzle.slice', 'ActiveState') === 'active')
    administer('systemctl', 'stop', 'puzzle.slice')
}
