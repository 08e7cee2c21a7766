import { jsonText } from '../../json.ts'
import { refuseWritableCode, serviceFiles, writeServiceFiles } from '../../service-files.ts'
import { administer, requireSystemdRoot } from '../../systemctl.ts'
import type { VerbRun } from '../../verb.ts'

/** Makes the daemon a service and starts it. Running it again brings the files up to date and restarts. */
export const run: VerbRun = async (context) => {
  requireSystemdRoot('install')
  refuseWritableCode()
  const written = await writeServiceFiles(serviceFiles())
  administer('systemd-sysusers')
  administer('systemd-tmpfiles', '--create')
  administer('systemctl', 'daemon-reload')
  // The bus and polkit read their files again; polkit watches its own.
  administer('systemctl', 'reload', 'dbus.service')
  administer('systemctl', 'enable', '--quiet', 'puzzled.service', 'puzzled-cleanup.timer')
  administer('systemctl', 'restart', 'puzzled.service', 'puzzled-cleanup.timer')
  const text = `${written.map((path) => `wrote ${path}\n`).join('')}puzzled.service is running.\n`
  await context.print(context.json ? jsonText({ written }) : text)
  return 0
}
