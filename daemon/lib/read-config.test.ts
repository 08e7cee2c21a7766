import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { needs, root } from '../../test/tier/needs.ts'
import { stateDirectory } from './read-config.ts'

const folder = mkdtempSync(join(tmpdir(), 'puzzled-config-'))
const file = join(folder, 'puzzled.yaml')
afterAll(() => rmSync(folder, { recursive: true }))

needs(root)('the store of this machine is where the configuration says', async () => {
  writeFileSync(file, 'state_dir: /srv/puzzled\n')
  expect(await stateDirectory(null, file)).toBe('/srv/puzzled')
})

it('a store that is named needs no configuration', async () => {
  writeFileSync(file, 'state_dir: [\n')
  expect(await stateDirectory('here', file)).toBe(resolve('here'))
})

needs(root)('a configuration that cannot be read is not guessed about', async () => {
  await expect(stateDirectory(null, file)).rejects.toMatchObject({ code: 'config-invalid' })
})
