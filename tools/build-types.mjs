// Writes dist/types: the declarations of what `import … from 'puzzled'` gives, for a package only.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { repository, run } from './package-tree.mjs'

const out = join(repository, 'dist/types')
const all = mkdtempSync(join(tmpdir(), 'puzzled-types-'))
/** Declarations keep the names of the sources; a package has none. */
const IMPORT = /(from '|import\(")(\.{1,2}\/[^'"]+)\.ts(?=['"])/g

/** Only what the entry leads to: the compiler writes one for each file of the program. */
function keep(file, kept) {
  if (kept.has(file)) return
  const text = readFileSync(file, 'utf8')
  kept.set(file, text.replaceAll(IMPORT, '$1$2.js'))
  for (const [, , name] of text.matchAll(IMPORT)) keep(join(dirname(file), `${name}.d.ts`), kept)
}

try {
  const compiler = join(repository, 'node_modules/.bin/tsc')
  run(compiler, ['-p', 'tools/types.tsconfig.json', '--outDir', all], { cwd: repository })
  const kept = new Map()
  keep(join(all, 'ctl/client.d.ts'), kept)
  rmSync(out, { recursive: true, force: true })
  for (const [file, text] of kept) {
    const target = join(out, relative(all, file))
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(target, text)
  }
} finally {
  rmSync(all, { recursive: true, force: true })
}
