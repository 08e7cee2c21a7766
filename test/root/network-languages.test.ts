import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { network, rule } from '../fixtures/network-rules.ts'
import { needs, program, root } from '../tier/needs.ts'
import { buildGoReader } from './go-program.ts'
import { Rig } from './network-rig.ts'

let rig: Rig
beforeEach(async () => {
  rig = await Rig.open(network([rule('read', { hosts: ['*.example.com'], ports: [80, 443] })]))
})
afterEach(async () => await rig.close())

describe('programs that bring their own HTTP', () => {
  needs(root, program('go'))('a Go program reads with and without the variables', async () => {
    const binary = join(rig.directory, 'main')
    buildGoReader(rig.directory, binary)
    for (const bare of [false, true]) {
      const said = await rig.run([binary, 'https://a.example.com/go'], { bare })
      expect(said.out).toBe('HTTP/2.0 hello from a.example.com/go\n')
    }
  })

  needs(root, program('npm'))('npm installs from a registry, scoped names included', async () => {
    const folder = join(rig.directory, 'package')
    mkdirSync(folder)
    writeFileSync(join(folder, 'package.json'), '{"name":"@scope/thing","version":"1.0.0"}')
    const tarball = spawnSync('tar', ['-C', rig.directory, '-cz', 'package']).stdout
    const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`
    const dist = { tarball: 'https://npm.example.com/@scope/thing/-/thing-1.0.0.tgz', integrity }
    const version = { name: '@scope/thing', version: '1.0.0', dist }
    const asked: string[] = []
    rig.outside.handler = (request, response) => {
      asked.push(request.url ?? '')
      if (request.url?.endsWith('.tgz') === true) response.end(tarball)
      else
        response.end(
          JSON.stringify({
            name: '@scope/thing',
            'dist-tags': { latest: '1.0.0' },
            versions: { '1.0.0': version },
          }),
        )
    }
    const project = join(rig.directory, 'project')
    mkdirSync(project)
    writeFileSync(join(project, 'package.json'), '{"name":"project","version":"1.0.0"}')
    const args = [
      'install',
      '--registry',
      'https://npm.example.com',
      '--no-audit',
      '--no-fund',
      '--ignore-scripts',
      '@scope/thing',
    ]
    const said = await rig.run(['npm', ...args], { cwd: project })
    expect([said.code, said.err.includes('ERR')]).toEqual([0, false])
    expect(asked).toContain('/@scope%2fthing')
  })

  needs(root, program('pip'))('pip reads an index', async () => {
    rig.outside.handler = (_request, response) => {
      response.setHeader('content-type', 'text/html')
      response.end('<!DOCTYPE html><html><body><a href="thing-1.0.tar.gz">thing-1.0.tar.gz</a></body></html>')
    }
    const index = 'https://pip.example.com/simple'
    const said = await rig.run([
      'pip',
      'index',
      'versions',
      '--disable-pip-version-check',
      '--index-url',
      index,
      'thing',
    ])
    expect(said.out).toContain('thing (1.0)')
  })
})
