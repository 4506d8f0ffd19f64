/** The client's address in audit events, for the forms in which proxies and clients write addresses. */
import { once } from 'node:events'
import { type OutgoingHttpHeaders, request as send } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type NodeGateway, startNodeGateway } from './gateway.ts'

/** The connection of a proxy comes from here. Other addresses of this machine are not trusted. */
const PROXY = '127.0.0.2'
const OTHER = '127.0.0.3'
const TRUSTED_PROXIES = `${PROXY}, 10.0.0.0/8, 2001:db8:ff::/48`
const CLIENT = '192.0.2.7'
/** A client writes this address on the left of the address that its proxy appends. */
const VICTIM = '198.51.100.1'

const MAX_NAME_CHARS = 30

/** Sends a request from an address, and returns the address in its audit event. */
async function recorded(
  { url, running }: NodeGateway,
  localAddress: string,
  headers: OutgoingHttpHeaders,
): Promise<unknown> {
  const request = send(`${url}/orders`, { headers, localAddress, agent: false }).end()
  const [response] = await once(request, 'response')
  response.resume()
  const id: unknown = response.headers['x-request-id']
  const eventOf = () =>
    running
      .output()
      .split('\n')
      .find((line) => line.includes(`"requestId":"${id}"`))
  await expect.poll(eventOf, { interval: 5 }).toBeDefined()
  return (JSON.parse(eventOf() ?? '') as { readonly address: unknown }).address
}

/** Texts that a client writes into a header of addresses, alone or before a comma. */
const OF_CLIENTS = [
  VICTIM,
  `"${VICTIM}"`,
  `${VICTIM},`,
  '"',
  '\\',
  '"\\',
  '\\"',
  'for="',
  `for=${VICTIM};host="`,
  `for="${VICTIM}`,
  `for=${VICTIM}`,
  'unknown',
  '_hidden',
  '127.0.0.2',
  '10.0.0.1',
  '[2001:db8::9]:1',
  '[',
  'fe80::1%eth0',
  '\t',
  '\xe9',
  Array(1_000).fill('10.0.0.1').join(),
  Array(1_000).fill('"').join(),
  Array(500).fill(`for=${VICTIM}`).join(),
]

/** The lists and fields with an element of a client on the left, and those of proxies on the right. */
const listsOf = (client: string, ...proxies: readonly string[]): readonly (string | string[])[] => [
  [client, ...proxies].join(', '),
  [client, ...proxies].join(),
  [client, ...proxies],
  [client, proxies.join(' ,\t')],
  [`${client}, ${client}`, client, ...proxies, ''],
]

type Case = readonly [reported: string | readonly string[], address: string]

describe.each<{
  readonly header: 'x-forwarded-for' | 'forwarded'
  readonly other: string
  readonly one: (address: string) => string
  readonly cases: readonly Case[]
}>([
  {
    header: 'x-forwarded-for',
    other: 'forwarded',
    one: (address) => address,
    cases: [
      [`${CLIENT}:4711`, CLIENT],
      ['::ffff:192.0.2.7', CLIENT],
      ['[::ffff:192.0.2.7]:443', CLIENT],
      ['2001:db8:1:2:3::9', '2001:db8:1:2::/64'],
      ['[2001:db8:1:2:3::9]', '2001:db8:1:2::/64'],
      ['[2001:DB8:1:2:3::9]:443', '2001:db8:1:2::/64'],
      ['fe80::1%eth0', 'fe80:0:0:0::/64'],
      ['[fe80::1%eth0]:443', 'fe80:0:0:0::/64'],
      ['fe80::1%25eth0', 'fe80:0:0:0::/64'],
      [`"${CLIENT}"`, 'unknown'],
      ['unknown', 'unknown'],
      ['_hidden', 'unknown'],
      ['localhost', 'unknown'],
      ['192.0.2', 'unknown'],
      ['192.0.2.07', 'unknown'],
      ['0xc0000207', 'unknown'],
      ['3221225991', 'unknown'],
      ['192.0.2.7/32', 'unknown'],
      ['192.0.2.7 198.51.100.1', 'unknown'],
      ['192.0.2.7;198.51.100.1', 'unknown'],
      [`for=${CLIENT}`, 'unknown'],
      ['', PROXY],
      [[' ', ','], PROXY],
    ],
  },
  {
    header: 'forwarded',
    other: 'x-forwarded-for',
    one: (address) => `for=${address}`,
    cases: [
      [`for="${CLIENT}"`, CLIENT],
      [`For="${CLIENT}:4711"`, CLIENT],
      [`for="${CLIENT}:_port"`, 'unknown'],
      ['for="192.0.2.\\7"', CLIENT],
      ['for="::ffff:192.0.2.7"', CLIENT],
      ['for="[2001:db8:1:2:3::9]"', '2001:db8:1:2::/64'],
      ['for="[2001:db8:1:2:3::9]:443";proto=https', '2001:db8:1:2::/64'],
      ['for="[fe80::1%eth0]:443"', 'fe80:0:0:0::/64'],
      [`proto=https;by=203.0.113.1;for=${CLIENT};host="a, for=${VICTIM}"`, CLIENT],
      [`host="\\", for=${VICTIM}, \\"";for=${CLIENT}`, CLIENT],
      [`for=${CLIENT};ext="for=${VICTIM};\\\\"`, CLIENT],
      [`for=${VICTIM};for=${CLIENT}`, 'unknown'],
      [`xfor=${VICTIM}`, 'unknown'],
      [`by=${VICTIM}`, 'unknown'],
      [`for =${CLIENT}`, 'unknown'],
      [`for="${CLIENT}`, 'unknown'],
      [`for=[2001:db8:1:2:3::9]`, 'unknown'],
      ['for=unknown', 'unknown'],
      ['for=_hidden', 'unknown'],
      ['for="_hidden:80"', 'unknown'],
      ['for=""', 'unknown'],
      [CLIENT, 'unknown'],
      ['', PROXY],
      [[' ', ','], PROXY],
    ],
  },
])(
  'with the header $header of trusted proxies, an audit event',
  ({ header, other, one, cases }) => {
    let gateway: NodeGateway
    beforeAll(async () => {
      gateway = await startNodeGateway({ TRUSTED_PROXIES, PROXY_HEADER: header })
    })
    afterAll(() => gateway.close())

    test('has the address that the last untrusted hop was seen with, in each form', async () => {
      const found: Case[] = []
      for (const [reported] of cases) {
        const value = typeof reported === 'string' ? reported : [...reported]
        const address = await recorded(gateway, PROXY, { [header]: value, [other]: one(VICTIM) })
        found.push([reported, `${address}`])
      }
      expect(found).toEqual(cases)
    })

    test.each(OF_CLIENTS.map((text) => [text.slice(0, MAX_NAME_CHARS), text] as const))(
      'does not depend on the text %j of a client',
      async (_, text) => {
        const chains = [[one(CLIENT)], [one(CLIENT), one('10.0.0.1'), one('10.255.0.1')]]
        for (const proxies of chains) {
          for (const value of listsOf(text, ...proxies).filter((list) => `${list}`.length < 12_000))
            expect([value, await recorded(gateway, PROXY, { [header]: value })]).toEqual([
              value,
              CLIENT,
            ])
        }
      },
    )

    test('has the address of the connection if no trusted proxy made it', async () => {
      for (const text of [one(VICTIM), one('10.0.0.1'), one(PROXY), 'unknown'])
        expect(await recorded(gateway, OTHER, { [header]: text, [other]: text })).toBe(OTHER)
    })

    test('has the address of no other header', async () => {
      const names = [
        other,
        header.replaceAll('-', '_'),
        ...['x-real-ip', 'client-ip', 'true-client-ip', 'cf-connecting-ip', 'x-client-ip'],
        ...['x-original-forwarded-for', 'x-cluster-client-ip', 'fastly-client-ip', 'via'],
      ].filter((name) => name !== header)
      for (const name of names)
        expect([name, await recorded(gateway, PROXY, { [name]: VICTIM })]).toEqual([name, PROXY])
    })
  },
)
