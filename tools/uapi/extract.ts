import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Asks a C compiler for the values of names.txt. Nothing is run: the values are read from the assembly. */

const DIRECTORY = fileURLToPath(new URL('.', import.meta.url)).replace(
  /node_modules\/\.run-ts-[^/]*\/$/,
  'tools/uapi/',
)

export const ARCHITECTURES = ['x64', 'arm64'] as const
export type Architecture = (typeof ARCHITECTURES)[number]
export const COMPILER: Readonly<Record<Architecture, string>> = {
  x64: 'x86_64-linux-gnu-gcc',
  arm64: 'aarch64-linux-gnu-gcc',
}

export interface Struct {
  /** The C type's name and the name that is exported. */
  type: string
  name: string
  fields: readonly string[]
}
export interface Section {
  name: string
  includes: readonly string[]
  constants: readonly string[]
  structs: readonly Struct[]
}
export type Values = ReadonlyMap<string, bigint>

export const inputFiles = (): string[] =>
  ['names.txt', 'newer.h', 'extract.ts', '../generators/uapi.ts'].map((name) => DIRECTORY + name)

/** `[section]`, `#include …`, `struct TYPE [= NAME]: FIELD …`, names; `# ` begins a comment. */
export function parseNames(text: string): Section[] {
  const sections: (Section & { includes: string[]; constants: string[]; structs: Struct[] })[] = []
  for (const line of text.split('\n')) {
    const header = /^\[(\w+)\]$/.exec(line)
    if (header?.[1] !== undefined)
      sections.push({ name: header[1], includes: [], constants: [], structs: [] })
    const section = sections.at(-1)
    if (section === undefined || header !== null || line.startsWith('# ') || line === '') continue
    const struct = /^struct (\w+)(?: = (\w+))?: (.*)$/.exec(line)
    if (line.startsWith('#include ')) section.includes.push(line)
    else if (struct !== null) {
      const [, type = '', name = type, fields = ''] = struct
      section.structs.push({ type, name, fields: fields.split(' ') })
    } else section.constants.push(...line.split(/\s+/))
  }
  return sections
}

export const readSections = (): Section[] => parseNames(readFileSync(`${DIRECTORY}names.txt`, 'utf8'))

/** The type in C: `siginfo_t` is a typedef, everything else a tag. */
const cType = (type: string): string =>
  type.endsWith('_t') && type === 'siginfo_t' ? type : `struct ${type}`

function program(section: Section): string {
  const lines = [
    ...section.includes,
    `#include "${DIRECTORY}newer.h"`,
    '#include <stddef.h>',
    'void values(void) {',
  ]
  const emit = (name: string, expression: string) =>
    lines.push(
      `asm volatile("@@${name} %0 %1" :: "i"((long long)(${expression})), "i"(((${expression}) < 0) ? 1 : 0));`,
    )
  for (const name of section.constants) emit(name, name)
  for (const { type, name, fields } of section.structs) {
    emit(`${name}.size`, `sizeof(${cType(type)})`)
    for (const field of fields) emit(`${name}.${field}`, `offsetof(${cType(type)}, ${field})`)
  }
  return `#define _GNU_SOURCE\n${lines.join('\n')}\n}\n`
}

function compile(compiler: string, source: string, args: readonly string[]): string {
  const run = spawnSync(compiler, [...args, '-w', '-x', 'c', '-', '-o', '-'], {
    input: source,
    encoding: 'utf8',
  })
  if (run.error !== undefined) throw new Error(`Cannot run ${compiler}`, { cause: run.error })
  if (run.status !== 0) throw new Error(`${compiler} refused the program:\n${run.stderr.slice(0, 4000)}`)
  return run.stdout
}

/** `NAME` and `STRUCT.FIELD` with their values for one architecture. */
export function extractSection(architecture: Architecture, section: Section): Values {
  const assembly = compile(COMPILER[architecture], program(section), ['-O1', '-S'])
  const values = new Map<string, bigint>()
  for (const match of assembly.matchAll(/^\s*@@([\w.]+) [$#]?(-?\d+) [$#]?([01])$/gm)) {
    const [, name = '', value = '', negative] = match
    values.set(name, negative === '1' ? BigInt(value) : BigInt.asUintN(64, BigInt(value)))
  }
  return values
}

/** The whole system call table by name. */
export function extractSyscalls(architecture: Architecture): Values {
  const source = `#include <asm/unistd.h>\n#include "${DIRECTORY}newer.h"\n`
  const macros = compile(COMPILER[architecture], source, ['-E', '-dM'])
  const names = [...macros.matchAll(/^#define __NR_(\w+) /gm)]
    .map((match) => match[1] ?? '')
    .filter((name) => !/^(syscalls|arch_specific_syscall|sync_file_range2)$|^3264_/.test(name))
  const listing = names.map((name) => `"${name}" __NR_${name}`).join('\n')
  const expanded = compile(COMPILER[architecture], `${source}${listing}\n`, ['-E', '-P'])
  const values = new Map<string, bigint>()
  for (const match of expanded.matchAll(/^"(\w+)" (\d+)$/gm))
    values.set(match[1] ?? '', BigInt(match[2] ?? ''))
  return values
}

/** Why this architecture cannot be extracted here, or nothing. */
export function missingCompiler(architecture: Architecture): string | undefined {
  const run = spawnSync(COMPILER[architecture], ['-x', 'c', '-E', '-'], {
    input: '#include <linux/landlock.h>\n#include <stddef.h>\n#include <sys/socket.h>\n',
    encoding: 'utf8',
  })
  if (run.error !== undefined) return `${COMPILER[architecture]} is not installed`
  return run.status === 0 ? undefined : `${COMPILER[architecture]} has no kernel headers`
}
