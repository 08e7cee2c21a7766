import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Address, classifyAddress, inCidr, judgeAddress, parseAddress, parseCidr } from './address.ts'

const NONE: ReadonlySet<string> = new Set()

function address(text: string): Address {
  const parsed = parseAddress(text)
  if (parsed === undefined) throw new Error(text)
  return parsed
}

const CLASSES: Readonly<Record<string, readonly string[]>> = {
  public: [
    '1.1.1.1',
    '8.8.8.8',
    '172.15.255.255',
    '172.32.0.1',
    '2606:4700::1111',
    '64:ff9b::1.1.1.1',
    '::ffff:1.1.1.1',
  ],
  loopback: ['127.0.0.1', '127.255.0.3', '::1', '::ffff:127.0.0.1', '64:ff9b::127.0.0.1', '2002:7f00:1::'],
  unspecified: ['0.0.0.0', '0.1.2.3', '::', '::ffff:0.0.0.0'],
  private: [
    '10.0.0.1',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '::ffff:10.0.0.1',
    '64:ff9b::10.0.0.1',
    '2002:a00:1::',
    '::10.0.0.1',
  ],
  shared: ['100.64.0.1', '100.127.255.255'],
  'link-local': ['169.254.1.1', 'fe80::1', 'febf::1', 'fec0::1'],
  'unique-local': ['fc00::1', 'fdff::1'],
  metadata: [
    '169.254.169.254',
    '169.254.170.2',
    '100.100.100.200',
    '168.63.129.16',
    '192.0.0.192',
    'fd00:ec2::254',
    'fd20:ce::254',
    '::ffff:169.254.169.254',
    '64:ff9b::a9fe:a9fe',
    '2002:a9fe:a9fe::',
    '64:ff9b:1::169.254.169.254',
    '2606:4700::5efe:a9fe:a9fe',
  ],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1'],
  broadcast: ['255.255.255.255'],
  reserved: [
    '192.0.0.1',
    '192.0.2.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '240.0.0.1',
    '2001:db8::1',
    '2002:808:808::',
    '2001::1',
    '3fff::1',
    '4000::1',
    '64:ff9b:1::8.8.8.8',
  ],
}

describe('address classes', () => {
  for (const [range, texts] of Object.entries(CLASSES))
    it.each(texts.map((text) => [text]))(`${range}: %s`, (text) => {
      expect(classifyAddress(address(text), NONE)).toBe(range)
    })

  it("knows this host's own addresses, also inside IPv6", () => {
    const own = new Set(['8.8.4.4', '2606:4700::1'])
    for (const text of ['8.8.4.4', '::ffff:8.8.4.4', '64:ff9b::8.8.4.4', '2606:4700::1'])
      expect(classifyAddress(address(text), own), text).toBe('host')
  })

  it('sees Teredo clients through the inversion', () => {
    expect(classifyAddress(address('2001:0:4136:e378:8000:63bf:5601:5601'), NONE)).toBe('metadata')
  })
})

describe('judging an address', () => {
  const allow = (text: string) => {
    const cidr = parseCidr(text)
    if (cidr === undefined) throw new Error(text)
    return [cidr]
  }

  it('lets public addresses pass and names the range of others', () => {
    expect(judgeAddress(address('1.1.1.1'), NONE, [])).toEqual({ ok: true })
    expect(judgeAddress(address('10.0.0.1'), NONE, [])).toMatchObject({ ok: false, range: 'private' })
  })

  it('lets a private address pass only where the rule names it', () => {
    expect(judgeAddress(address('10.1.2.3'), NONE, allow('10.1.0.0/16'))).toEqual({ ok: true })
    expect(judgeAddress(address('10.2.2.3'), NONE, allow('10.1.0.0/16')).ok).toBe(false)
    expect(judgeAddress(address('::ffff:10.1.2.3'), NONE, allow('10.1.2.3')).ok).toBe(true)
    expect(judgeAddress(address('127.0.0.1'), NONE, allow('127.0.0.1')).ok).toBe(true)
  })

  it('never lets metadata, multicast, broadcast or the unspecified address pass', () => {
    for (const text of ['169.254.169.254', '168.63.129.16', '224.0.0.1', '255.255.255.255', '0.0.0.0'])
      expect(judgeAddress(address(text), NONE, allow('0.0.0.0/0')).ok, text).toBe(false)
    expect(judgeAddress(address('fd00:ec2::254'), NONE, allow('::/0')).ok).toBe(false)
  })
})

describe('address text', () => {
  it('agrees with the WHATWG parser on every IPv6 address', () => {
    fc.assert(
      fc.property(fc.ipV6(), (text) => {
        expect(`[${address(text).text}]`).toBe(new URL(`http://[${text}]/`).hostname)
      }),
      { numRuns: 500 },
    )
  })

  it('compares prefixes by bit', () => {
    const cidr = parseCidr('172.16.0.0/12')
    if (cidr === undefined) throw new Error('cidr')
    expect(inCidr(address('172.31.255.255'), cidr)).toBe(true)
    expect(inCidr(address('172.32.0.0'), cidr)).toBe(false)
    for (const bad of ['10.0.0.0/33', '10.0.0.0/', '10/8', '::/129', '::/08', 'x/8'])
      expect(parseCidr(bad)).toBeUndefined()
  })
})
