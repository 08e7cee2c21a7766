import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { afterEach, beforeAll, beforeEach, describe, expect } from 'vitest'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { network, rule } from '../fixtures/network-rules.ts'
import { type Missing, needs, program, root } from '../tier/needs.ts'
import { makeBranch, run, type TestBranch, warmUp } from './branch.fixture.ts'
import { Rig } from './network-rig.ts'

const NETWORK = network([
  rule('live', { hosts: ['live.example.com'], ports: [80, 443], class: 'live' }),
  rule('write', { hosts: ['a.example.com'], ports: [80, 443], methods: ['POST'], class: 'queue' }),
  rule('read', { hosts: ['*.example.com'], ports: [80, 443] }),
])
const PYTHON = '/usr/bin/python3'
const GIT_BACKEND = '/usr/lib/git-core/git-http-backend'

const module = (name: string): Missing =>
  spawnSync(PYTHON, ['-c', `import ${name}`]).status === 0 ? undefined : `needs python3-${name}`

let rig: Rig
let branch: TestBranch
let launcher: Launcher
let room: string
beforeAll(async () => await warmUp(new Launcher()))
beforeEach(async () => {
  rig = await Rig.open(NETWORK)
  branch = makeBranch({ profile: { network: NETWORK } })
  launcher = new Launcher({ network: async () => rig.network })
  room = mkdtempSync(join(tmpdir(), 'puzzled-outside-'))
})
afterEach(async () => {
  branch.remove()
  await rig.close()
  rmSync(room, { recursive: true })
})

const inside = (...argv: string[]) => run(launcher, branch, argv)
/** Without any variable that names the proxy or the authorities. */
const bare = (...argv: string[]) => inside('env', '-i', 'PATH=/usr/bin:/bin', ...argv)
const inBase = (name: string, text: string): string => {
  const path = join(branch.base, name)
  writeFileSync(path, text)
  return path
}

describe('Python', () => {
  const REQUESTS = `
import requests
print(requests.get('https://a.example.com/one').text)
print(requests.get('http://b.example.com/two').text)
held = requests.post('https://a.example.com/issues', json={'n': 1})
print(held.status_code, held.json()['queued'])
print(requests.delete('https://a.example.com/x').json()['rule'])
`
  needs(root, module('requests'))('requests, with and without the variables', async () => {
    const expected = 'hello from a.example.com/one\nhello from b.example.com/two\n202 True\nread\n'
    const proxied = await inside(PYTHON, '-c', REQUESTS)
    expect([proxied.output, proxied.errors]).toEqual([expected, ''])
    const plain = await bare(PYTHON, '-c', REQUESTS)
    expect([plain.output, plain.errors]).toEqual([expected, ''])
    expect(rig.network.queue.queue.list()).toHaveLength(2)
  })

  const AIOHTTP = (trust: string) => `
import asyncio, aiohttp
async def main():
    async with aiohttp.ClientSession(trust_env=${trust}) as s:
        async with s.get('https://a.example.com/one') as r: print(await r.text())
        async with s.post('https://a.example.com/issues', data='x') as r: print(r.status)
        async with s.ws_connect('wss://live.example.com/socket') as ws:
            await ws.send_str('ping'); print((await ws.receive()).data)
        try:
            async with s.ws_connect('wss://b.example.com/socket') as ws: print('open')
        except aiohttp.WSServerHandshakeError as e: print(e.status)
asyncio.run(main())
`
  needs(root, module('aiohttp'))('aiohttp, wss included, with and without the variables', async () => {
    rig.outside.upgrade = echoFrames
    for (const trust of ['True', 'False']) {
      const said = await inside(PYTHON, '-c', AIOHTTP(trust))
      expect([said.output, said.errors]).toEqual(['hello from a.example.com/one\n202\necho ping\n403\n', ''])
    }
  })
})

/** As much of RFC 6455 as one short text frame needs. */
function echoFrames(request: IncomingMessage, socket: Duplex): void {
  const accept = createHash('sha1')
    .update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest('base64')
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  )
  socket.on('error', () => socket.destroy())
  socket.on('data', (frame: Buffer) => {
    if ((frame[0] ?? 0) !== 0x81) return socket.end()
    const mask = frame.subarray(2, 6)
    const text = frame.subarray(6).map((byte, at) => byte ^ (mask[at % 4] ?? 0))
    const answer = Buffer.concat([Buffer.from('echo '), text])
    return socket.write(Buffer.concat([Buffer.from([0x81, answer.length]), answer]))
  })
}

describe('git over the smart protocol', () => {
  const it = needs(root, program('git'), existsSync(GIT_BACKEND) ? undefined : 'needs git-http-backend')
  /** The CGI program of git itself. */
  function serveGit(request: IncomingMessage, response: ServerResponse): void {
    const { pathname, search } = new URL(request.url ?? '/', 'http://x')
    const child = spawn(GIT_BACKEND, {
      env: {
        GIT_PROJECT_ROOT: room,
        GIT_HTTP_EXPORT_ALL: '1',
        GIT_CONFIG_COUNT: '1',
        GIT_CONFIG_KEY_0: 'safe.directory',
        GIT_CONFIG_VALUE_0: '*',
        PATH_INFO: pathname,
        QUERY_STRING: search.slice(1),
        REQUEST_METHOD: request.method,
        CONTENT_TYPE: request.headers['content-type'] ?? '',
        HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
        HTTP_GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
        REMOTE_USER: 'agent',
        PATH: process.env.PATH,
      },
    })
    request.pipe(child.stdin)
    const said: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => said.push(chunk))
    child.once('close', () => {
      const whole = Buffer.concat(said)
      const end = whole.indexOf('\r\n\r\n')
      for (const line of whole.subarray(0, end).toString().split('\r\n')) {
        const [name = '', value = ''] = line.split(': ')
        if (name === 'Status') response.statusCode = Number(value.slice(0, 3))
        else response.setHeader(name, value)
      }
      response.end(whole.subarray(end + 4))
    })
  }

  it.each(['http', 'https'])(
    'clones over %s, pushes under a live rule and under no other',
    async (scheme) => {
      const repository = join(room, 'repo.git')
      const git = (...args: string[]) =>
        execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], {
          cwd: room,
          stdio: 'pipe',
        })
      git('init', '-q', '--bare', '-b', 'main', repository)
      git('-C', repository, 'config', 'http.receivepack', 'true')
      git('init', '-q', '-b', 'main', 'work')
      writeFileSync(join(room, 'work', 'file'), 'x'.repeat(100_000))
      git('-C', 'work', 'add', '.')
      git('-C', 'work', 'commit', '-qm', 'one')
      git('-C', 'work', 'push', '-q', repository, 'main')
      rig.outside.handler = serveGit
      const script = `set -e
git clone -q ${scheme}://b.example.com/repo.git copy && cd copy
git config user.name a; git config user.email a@b
echo more > more && git add . && git commit -qm two
git push -q ${scheme}://live.example.com/repo.git main:pushed && echo pushed
git push -q ${scheme}://b.example.com/repo.git main:never || echo refused`
      const said = await inside('sh', '-c', script)
      expect(said.output).toBe('pushed\nrefused\n')
      expect(git('-C', repository, 'branch', '--list').toString().match(/\w+/g)).toEqual(['main', 'pushed'])
      expect(rig.events).toContainEqual(
        expect.objectContaining({ message: expect.stringContaining('git push') }),
      )
    },
  )
})

describe('Java', () => {
  const SOURCE = `
import java.net.URI; import java.net.http.*; import java.net.http.HttpResponse.BodyHandlers;
public class Main { public static void main(String[] a) throws Exception {
  var client = HttpClient.newHttpClient();
  var get = client.send(HttpRequest.newBuilder(URI.create("https://a.example.com/java")).build(), BodyHandlers.ofString());
  System.out.println(get.version() + " " + get.body());
  var post = HttpRequest.newBuilder(URI.create("https://a.example.com/issues")).POST(HttpRequest.BodyPublishers.ofString("x")).build();
  System.out.println(client.send(post, BodyHandlers.ofString()).statusCode());
} }`
  needs(
    root,
    program('java'),
    program('javac'),
  )('trusts the branch by its own store, and knows no proxy', async () => {
    execFileSync('javac', ['--release', '17', '-d', branch.base, inBase('Main.java', SOURCE)], {
      stdio: 'pipe',
    })
    const said = await inside('java', '-Xshare:off', '-XX:+UseSerialGC', '-cp', branch.base, 'Main')
    expect([said.output, said.errors]).toEqual(['HTTP_2 hello from a.example.com/java\n202\n', ''])
  })

  needs(root, program('keytool'))('finds every authority of the bundle in the store', async () => {
    const said = await inside('keytool', '-list', '-cacerts', '-storepass', 'changeit')
    const bundle = readFileSync('/etc/ssl/certs/ca-certificates.crt', 'utf8').match(/BEGIN/g)?.length ?? 0
    expect(said.output).toContain(`contains ${bundle + 1} entries`)
  })
})

describe('package managers', () => {
  needs(
    root,
    program('apt-get'),
    program('dpkg-deb'),
  )('apt reads a repository over http and https', async () => {
    const folder = join(room, 'apt')
    mkdirSync(join(folder, 'thing', 'DEBIAN'), { recursive: true })
    const control =
      'Package: thing\nVersion: 1.0\nArchitecture: all\nMaintainer: a <a@b.example>\nDescription: thing\n'
    writeFileSync(join(folder, 'thing', 'DEBIAN', 'control'), control)
    execFileSync('dpkg-deb', ['-b', join(folder, 'thing'), join(folder, 'thing.deb')], { stdio: 'pipe' })
    const sum = (file: string): string => {
      const bytes = readFileSync(join(folder, file))
      return `${createHash('sha256').update(bytes).digest('hex')} ${bytes.length}`
    }
    const [digest, size] = sum('thing.deb').split(' ')
    const place = `Filename: ./thing.deb\nSize: ${size}\nSHA256: ${digest}\n`
    writeFileSync(join(folder, 'Packages'), `${control}${place}\n`)
    writeFileSync(
      join(folder, 'Release'),
      `Date: ${new Date().toUTCString()}\nSHA256:\n ${sum('Packages')} Packages\n`,
    )
    rig.outside.handler = (request, response) => {
      const file = join(folder, (request.url ?? '').replace('/./', '/'))
      if (existsSync(file)) response.end(readFileSync(file))
      else response.writeHead(404).end()
    }
    for (const scheme of ['http', 'https']) {
      const list = inBase('sources.list', `deb [trusted=yes] ${scheme}://apt.example.com ./\n`)
      const options = [
        `Dir::Etc::SourceList=${list}`,
        'Dir::Etc::SourceParts=/dev/null',
        `Dir::State=${branch.base}/state`,
        `Dir::Cache=${branch.base}/cache`,
        'Dir::State::status=/dev/null',
        'Debug::NoLocking=1',
      ].flatMap((option) => ['-o', option])
      const make = `mkdir -p state/lists/partial cache/archives/partial && apt-get "$@" update && apt-get "$@" download thing`
      const said = await inside('sh', '-c', make, 'sh', '-q', ...options)
      expect([scheme, said.errors, said.exit.code]).toEqual([scheme, '', 0])
      expect(existsSync(join(branch.upper, 'thing_1.0_all.deb'))).toBe(true)
      rmSync(join(branch.upper, 'thing_1.0_all.deb'))
    }
  })

  const pip: Missing =
    spawnSync(PYTHON, ['-m', 'pip', '--version']).status === 0 ? undefined : 'needs python3-pip'
  needs(root, pip)('pip downloads a wheel and its metadata', async () => {
    const name = 'thing-1.0-py3-none-any.whl'
    const code = `
import zipfile
with zipfile.ZipFile('${room}/${name}', 'w') as z:
    z.writestr('thing.py', 'answer = 42')
    z.writestr('thing-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: thing\\nVersion: 1.0\\n')
    z.writestr('thing-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    z.writestr('thing-1.0.dist-info/RECORD', '')`
    execFileSync(PYTHON, ['-c', code])
    rig.outside.handler = (request, response) => {
      if (request.url?.endsWith('.whl') === true) response.end(readFileSync(join(room, name)))
      else response.setHeader('content-type', 'text/html').end(`<a href="/files/${name}">${name}</a>`)
    }
    const install = [PYTHON, '-m', 'pip', 'install', '-q', '--no-deps', '--target', 'site', '--index-url']
    const said = await inside(...install, 'https://pip.example.com/simple', 'thing')
    expect([said.errors.replace(/^WARNING.*\n/gm, ''), said.exit.code]).toEqual(['', 0])
    expect(readFileSync(join(branch.upper, 'site', 'thing.py'), 'utf8')).toBe('answer = 42')
  })

  needs(root, program('npm'))('npm installs from a registry', async () => {
    const folder = join(room, 'package')
    mkdirSync(folder)
    writeFileSync(join(folder, 'package.json'), '{"name":"thing","version":"1.0.0"}')
    const tarball = spawnSync('tar', ['-C', room, '-cz', 'package']).stdout
    const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`
    const dist = { tarball: 'https://npm.example.com/thing/-/thing-1.0.0.tgz', integrity }
    const versions = { '1.0.0': { name: 'thing', version: '1.0.0', dist } }
    rig.outside.handler = (request, response) => {
      if (request.url?.endsWith('.tgz') === true) response.end(tarball)
      else response.end(JSON.stringify({ name: 'thing', 'dist-tags': { latest: '1.0.0' }, versions }))
    }
    inBase('package.json', '{"name":"project","version":"1.0.0"}')
    chownSync(join(branch.base, 'package.json'), 1000, 1000)
    const flags = ['--no-audit', '--no-fund', '--ignore-scripts', '--no-update-notifier']
    const said = await inside('npm', 'install', '--registry', 'https://npm.example.com', ...flags, 'thing')
    expect([said.errors, said.exit.code]).toEqual(['', 0])
    expect(existsSync(join(branch.upper, 'node_modules/thing/package.json'))).toBe(true)
  })
})

describe('node', () => {
  const FETCH = "fetch('https://a.example.com/node').then((r) => r.text()).then(console.log)"
  // By its name: the one that runs this test may lie where no agent can see it.
  needs(root, program('node'))('fetches with the variables for its proxy and without', async () => {
    for (const more of [['NODE_USE_ENV_PROXY=1'], ['NODE_USE_ENV_PROXY=0', 'HTTPS_PROXY=', 'https_proxy=']]) {
      const said = await inside('env', ...more, 'node', '-e', FETCH)
      expect([said.output, said.errors.replace(/.*ExperimentalWarning.*\n.*trace-warnings.*\n/, '')]).toEqual(
        ['hello from a.example.com/node\n', ''],
      )
    }
  })
})
