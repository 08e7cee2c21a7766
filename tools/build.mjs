// Bundles the entry points into dist/: few files to open is what makes `puzzlectl` start quickly.
// Everything is bundled except koffi, which is a native module and must stay a package.
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

const root = fileURLToPath(new URL('..', import.meta.url))
const { version } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'))

/** Entry points by output name. A `*.worker.ts` anywhere below daemon/ becomes dist/workers/<name>.js. */
function entries() {
  const found = { puzzlectl: 'ctl/main.ts', puzzled: 'daemon/main.ts', client: 'ctl/client.ts' }
  const input = {}
  for (const [name, file] of Object.entries(found)) if (existsSync(root + file)) input[name] = root + file
  for (const file of readdirSync(`${root}daemon`, { recursive: true })) {
    const match = /([^/]+)\.worker\.ts$/.exec(file)
    if (match) input[`workers/${match[1]}`] = `${root}daemon/${file}`
  }
  return input
}

/** One character that is none of Latin-1's makes two bytes of every character of a file, in each copy that V8 makes of it. */
function inAscii(code) {
  if (/\\[^\x00-\x7f]/.test(code)) throw new Error('A backslash in front of a character that is not ASCII')
  return code.replace(/[^\x00-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

const input = entries()
if (Object.keys(input).length > 0) {
  const bundle = await rolldown({
    input,
    cwd: root,
    platform: 'node',
    external: ['koffi'],
    logLevel: 'warn',
    checks: { eval: false },
    transform: { define: { 'process.env.PUZZLED_BUILD_VERSION': JSON.stringify(version) } },
  })
  rmSync(`${root}dist`, { recursive: true, force: true })
  await bundle.write({
    dir: `${root}dist`,
    // Found by `require`: synchronous, and every file of it can be compiled once and kept (lib/compile-cache.ts).
    format: 'cjs',
    exports: 'named',
    chunkFileNames: 'chunks/[name]-[hash].js',
    banner: (chunk) => (/^puzzle(ctl|d)$/.test(chunk.name) ? '#!/usr/bin/env node' : ''),
    minify: { compress: true, mangle: false, codegen: { removeWhitespace: true } },
    sourcemap: false,
  })
  await bundle.close()
  for (const file of readdirSync(`${root}dist`, { recursive: true }))
    if (file.endsWith('.js'))
      writeFileSync(`${root}dist/${file}`, inAscii(readFileSync(`${root}dist/${file}`, 'utf8')))
  writeFileSync(`${root}dist/package.json`, '{ "type": "commonjs" }\n')
  for (const bin of ['puzzlectl.js', 'puzzled.js'])
    if (existsSync(`${root}dist/${bin}`)) chmodSync(`${root}dist/${bin}`, 0o755)
  const profiles = spawnSync(process.execPath, ['tools/run-ts.mjs', 'tools/compile-profiles.ts'], {
    cwd: root,
    stdio: 'inherit',
  })
  if (profiles.status !== 0) throw new Error('The shipped profiles cannot be resolved')
}
