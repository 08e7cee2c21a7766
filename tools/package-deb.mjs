// Builds dist-packages/puzzled_VERSION_ARCH.deb: the installed package with its one dependency, the service files and
// the manual pages. Needs dpkg-deb and npm. With the same tree and Node the result is the same, byte for byte.
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { installInto, pack, repository, run } from './package-tree.mjs'

const manifest = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8'))
const ARCHITECTURES = { x64: 'amd64', arm64: 'arm64' }
const architecture = ARCHITECTURES[process.arch]
const out = join(repository, 'dist-packages')

const CONTROL = `Package: puzzled
Version: ${manifest.version}
Architecture: ${architecture}
Maintainer: the puzzled maintainers
Section: admin
Priority: optional
Depends: nodejs (>= 20.19), libc6, libseccomp2, libnftables1, libbpf1, libsystemd0
Recommends: dbus, polkitd, systemd
Description: Runs AI agents in kernel-enforced branches
 Agents work in a copy-on-write view of real directories. What they changed is
 one changeset, which a policy commits, holds for a person, or refuses.
`

/** The groups and folders first, then the bus and polkit see their files, then the daemon starts. */
const POSTINST = `#!/bin/sh
set -e
[ "$1" = configure ] || exit 0
if command -v systemd-sysusers >/dev/null; then systemd-sysusers puzzled.conf; fi
if command -v systemd-tmpfiles >/dev/null; then systemd-tmpfiles --create puzzled.conf; fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl reload dbus.service || true
  systemctl enable --quiet puzzled.service puzzled-cleanup.timer
  systemctl restart puzzled.service puzzled-cleanup.timer
fi
`

const PRERM = `#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl disable --now --quiet puzzled.service puzzled-cleanup.timer
  # Agents that an engine without the daemon started live in the slice too: it goes when nobody does.
  if [ -z "$(systemctl list-units --no-legend 'puzzle-*.scope')" ]; then
    systemctl stop --quiet puzzle.slice
  fi
fi
`

/** Held changesets and the audit log are the administrator's: even purging leaves /var/lib/puzzled. */
const POSTRM = `#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
if [ "$1" = purge ]; then
  rm -rf /var/cache/puzzled
fi
if [ "$1" = purge ] && [ -d /var/lib/puzzled ]; then
  echo 'puzzled: /var/lib/puzzled is kept; remove it when nothing in it is needed'
fi
`

function writeControl(tree) {
  const folder = join(tree, 'DEBIAN')
  mkdirSync(folder)
  writeFileSync(join(folder, 'control'), CONTROL)
  for (const [name, text] of Object.entries({ postinst: POSTINST, prerm: PRERM, postrm: POSTRM }))
    writeFileSync(join(folder, name), text, { mode: 0o755 })
}

function placeProgram(tree, prefix) {
  const installed = join(prefix, 'lib/node_modules/puzzled')
  const library = join(tree, 'usr/lib/puzzled')
  cpSync(installed, library, { recursive: true, verbatimSymlinks: true })
  // npm keeps its own record of what it installed; it names folders of this machine.
  rmSync(join(library, 'node_modules/.package-lock.json'), { force: true })
  mkdirSync(join(tree, 'usr/bin'), { recursive: true })
  for (const name of Object.keys(manifest.bin)) {
    const target = manifest.bin[name]
    if (!existsSync(join(library, target))) continue
    chmodSync(join(library, target), 0o755)
    symlinkSync(`../lib/puzzled/${target}`, join(tree, 'usr/bin', name))
  }
}

function placeServiceFiles(tree) {
  const folder = join(repository, 'systemd')
  const places = JSON.parse(readFileSync(join(folder, 'install.json'), 'utf8'))
  for (const [source, place] of Object.entries(places)) {
    mkdirSync(join(tree, place.package), { recursive: true })
    cpSync(join(folder, source), join(tree, place.package, place.name ?? source))
  }
}

function placeManuals(tree) {
  const folder = join(repository, 'docs/man')
  for (const page of existsSync(folder) ? readdirSync(folder) : []) {
    const section = /\.(\d)$/.exec(page)?.[1]
    if (section === undefined) continue
    const target = join(tree, `usr/share/man/man${section}`)
    mkdirSync(target, { recursive: true })
    writeFileSync(
      join(target, `${page}.gz`),
      run('gzip', ['-9nc', join(folder, page)], { encoding: 'buffer' }),
    )
  }
  const documents = join(tree, 'usr/share/doc/puzzled')
  mkdirSync(documents, { recursive: true })
  cpSync(join(repository, 'LICENSE'), join(documents, 'copyright'))
}

if (architecture === undefined) throw new Error(`No Debian architecture is known for ${process.arch}`)
const work = mkdtempSync(join(tmpdir(), 'puzzled-deb-'))
try {
  const tree = join(work, 'tree')
  mkdirSync(tree, { mode: 0o755 })
  installInto(join(work, 'prefix'), pack(work))
  placeProgram(tree, join(work, 'prefix'))
  placeServiceFiles(tree)
  placeManuals(tree)
  writeControl(tree)
  run('chmod', ['-R', 'go-w', tree])
  mkdirSync(out, { recursive: true })
  const file = join(out, `puzzled_${manifest.version}_${architecture}.deb`)
  const date = run('git', ['-c', 'safe.directory=*', 'log', '-1', '--format=%ct'], { cwd: repository }).trim()
  const env = { ...process.env, SOURCE_DATE_EPOCH: date }
  run('dpkg-deb', ['--root-owner-group', '-Zxz', '--build', tree, file], { env })
  console.log(`${basename(out)}/${basename(file)}`)
} finally {
  rmSync(work, { recursive: true, force: true })
}
