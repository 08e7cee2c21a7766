import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import {
  type Architecture,
  extractSection,
  extractSyscalls,
  inputFiles,
  readSections,
  type Section,
  type Values,
} from '../uapi/extract.ts'

/**
 * daemon/kernel/uapi/*.ts from C headers. The files carry a digest of their inputs: while it matches, they are fresh
 * and no compiler is needed. That the numbers are right is checked against C by test/uapi.test.ts.
 */
const OUT = 'daemon/kernel/uapi/'
const inputs = createHash('sha256')
for (const file of inputFiles()) inputs.update(readFileSync(file))
const digest = inputs.digest('hex').slice(0, 32)
const HEAD = `// pure\n// Generated from tools/uapi/names.txt (inputs ${digest}); do not edit.\n`

const sections = readSections()
const paths = [...sections.map(({ name }) => name), 'syscalls', 'index'].map((name) => `${OUT}${name}.ts`)

function committed(): Record<string, string> | undefined {
  const files: Record<string, string> = {}
  for (const path of paths) {
    const text = existsSync(path) ? readFileSync(path, 'utf8') : ''
    if (!text.startsWith(HEAD)) return undefined
    files[path] = text
  }
  return files
}

function literal(value: bigint): string {
  const safe = value <= BigInt(Number.MAX_SAFE_INTEGER) && value >= BigInt(Number.MIN_SAFE_INTEGER)
  const digits = value >= 256n ? `0x${value.toString(16)}` : value.toString()
  return safe ? digits : `${digits}n`
}

function choose(x64: bigint | undefined, arm64: bigint | undefined, name: string): string {
  if (x64 === undefined || arm64 === undefined) throw new Error(`The compiler said nothing about ${name}`)
  return x64 === arm64 ? literal(x64) : `ARM64 ? ${literal(arm64)} : ${literal(x64)}`
}

function sectionFile(section: Section): string {
  const x64 = extractSection('x64', section)
  const arm64 = extractSection('arm64', section)
  const value = (name: string) => choose(x64.get(name), arm64.get(name), name)
  const constants = section.constants.map((name) => `export const ${name} = ${value(name)}`)
  const structs = section.structs.map(({ name, fields }) => {
    const offsets = ['size', ...fields].map((field) => `${field}: ${value(`${name}.${field}`)}`)
    return `/** Size and offsets of struct ${name}. */\nexport const ${name} = { ${offsets.join(', ')} }`
  })
  const body = [...constants, '', ...structs].join('\n')
  return `${HEAD}${body.includes('ARM64') ? "\nconst ARM64 = process.arch === 'arm64'\n" : ''}\n${body}\n`
}

/** `{ a: 1, b: 2 }` wrapped at 110 columns: the table is data, not reading matter. */
function table(values: Values): string {
  const entries = [...values].sort((a, b) => Number(a[1] - b[1])).map(([name, value]) => `${name}: ${value},`)
  const lines: string[] = []
  for (const entry of entries) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + entry.length < 108) lines[lines.length - 1] = `${last} ${entry}`
    else lines.push(`  ${entry}`)
  }
  return `{\n${lines.join('\n')}\n}`
}

const TABLE: Readonly<Record<Architecture, string>> = { x64: 'X64_SYSCALLS', arm64: 'ARM64_SYSCALLS' }

function syscallsFile(): string {
  const one = (architecture: Architecture) =>
    `export const ${TABLE[architecture]} = ${table(extractSyscalls(architecture))} as const\n`
  return `${HEAD}
/** Every system call of the headers, by name. */
${one('x64')}
${one('arm64')}
type Common = keyof typeof X64_SYSCALLS & keyof typeof ARM64_SYSCALLS

/** The numbers of the running architecture; only names that both architectures have. */
export const NR: Readonly<Record<Common, number>> = process.arch === 'arm64' ? ARM64_SYSCALLS : X64_SYSCALLS

/** The whole table of the running architecture. */
export const SYSCALLS: Readonly<Record<string, number>> = NR
`
}

function generate(): Record<string, string> {
  const files: Record<string, string> = {}
  for (const section of sections) files[`${OUT}${section.name}.ts`] = sectionFile(section)
  files[`${OUT}syscalls.ts`] = syscallsFile()
  const modules = [...sections.map(({ name }) => name), 'syscalls']
  files[`${OUT}index.ts`] = `${HEAD}\n${modules.map((name) => `export * from './${name}.ts'`).join('\n')}\n`
  return files
}

console.log(JSON.stringify(committed() ?? generate()))
