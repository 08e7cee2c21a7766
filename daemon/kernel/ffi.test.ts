import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { packageRoot } from '../lib/assets.ts'
import { KOFFI_VERSION, nativeKoffi } from './ffi.ts'

it('the library that is loaded by its place is the one that the package names', () => {
  const { dependencies } = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8'))
  expect(dependencies.koffi).toBe(KOFFI_VERSION)
  expect(nativeKoffi()?.version).toBe(KOFFI_VERSION)
  expect(nativeKoffi()?.load('libc.so.6').func('int getpid()')()).toBe(process.pid)
})
