/** The place of a session on Node, which only a trusted proxy may report. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CALLBACK_PATH, SESSIONS_PATH } from '../../../src/features/sign-in/return-path.ts'
import { nodeEnvironment } from '../../../src/runtimes/node/environment/node-environment.ts'
import { startGatewayFor } from './gateway.ts'
import { startSigningProvider } from './signing-provider.ts'
import { createUserAgent } from './user-agent.ts'

const PROXY = '127.0.0.1'
const OTHER = '127.0.0.2'
const NAMES = { PROXY_COUNTRY_HEADER: 'CF-IPCountry', PROXY_CITY_HEADER: 'X-Geo-City' }

let provider: Awaited<ReturnType<typeof startSigningProvider>>
let gateway: Awaited<ReturnType<typeof startGatewayFor>>
beforeAll(async () => {
  provider = await startSigningProvider()
  gateway = await startGatewayFor([{ provider, name: 'Example' }], {
    variables: { TRUSTED_PROXIES: PROXY, ...NAMES },
  })
})
afterAll(() => Promise.all([gateway.close(), provider.close()]))

const CALLBACK = new RegExp(`${CALLBACK_PATH}\\?`)

/** Signs in, with these headers in the callback and later, and returns the place in the list and what reached the origin. */
async function signInFrom(from: string, headers: Record<string, string>) {
  const browser = createUserAgent({ from })
  const returning = await browser.visit(`${gateway.url}/orders`, CALLBACK)
  const callback = await browser.send(returning.url, { headers })
  expect(callback.status).toBe(303)
  const list = await browser.send(`${gateway.url}${SESSIONS_PATH}`, {
    headers: { ...headers, accept: 'application/json' },
  })
  const { sessions } = (await list.json()) as {
    readonly sessions: readonly { readonly current: boolean; city: unknown; country: unknown }[]
  }
  const { city, country } = sessions.find(({ current }) => current) ?? {}
  const page = await browser.visit(`${gateway.url}${SESSIONS_PATH}`)
  if (city)
    expect(page.text).toContain(`Place: ${`${city}`.replace('<b>', '&lt;b&gt;').split('</')[0]}`)
  expect((await browser.send(`${gateway.url}/orders`, { headers })).status).toBe(200)
  return { city, country, origin: gateway.reached.at(-1)?.headers ?? {} }
}

test.each<[Record<string, string>, string | null, string | null]>([
  [{ 'x-geo-city': 'Munich', 'cf-ipcountry': 'DE' }, 'Munich', 'DE'],
  [{ 'x-geo-city': 'S%C3%A3o%20Paulo', 'cf-ipcountry': 'br' }, 'São Paulo', 'BR'],
  [{ 'x-geo-city': Buffer.from('Zürich').toString('latin1') }, 'Zürich', null],
  [{ 'x-geo-city': '<b>Here</b>', 'cf-ipcountry': 'XX' }, '<b>Here</b>', null],
  // Another proxy has appended its value to that of a client, or the value is not readable.
  [{ 'x-geo-city': 'Paris, Munich', 'cf-ipcountry': 'FR, DE' }, null, null],
  [{ 'x-geo-city': '%E2%80%AEabc', 'cf-ipcountry': 'GERMANY' }, null, null],
  [{ 'x-geo-city': '100%', 'cf-ipcountry': '' }, null, null],
  [{ 'x-geo-city': '\xff\xfe' }, null, null],
  [{ 'x-geo-city': 'x'.repeat(2_000) }, null, null],
  // No setting names these.
  [{ 'x-geo-country': 'DE', 'cf-ipcity': 'Munich' }, null, null],
])(
  '%j from a trusted proxy is %j, %j, and from another address nothing',
  async (headers, city, country) => {
    const trusted = await signInFrom(PROXY, headers)
    expect(trusted).toMatchObject({ city, country })
    expect(trusted.origin['x-geo-city']).toBe(headers['x-geo-city'])
    const spoofed = await signInFrom(OTHER, headers)
    expect(spoofed).toMatchObject({ city: null, country: null })
    expect(spoofed.origin).not.toHaveProperty('x-geo-city')
  },
)

test('a header with a prefix that some servers remove is not sent to the origin, even from a trusted proxy', async () => {
  const wrapped = { 'grpc-metadata-x-geo-city': 'Paris', 'http-x-geo-city': 'Paris' }
  for (const from of [PROXY, OTHER]) {
    const { city, origin } = await signInFrom(from, { ...wrapped, 'x-other': 'kept' })
    expect(city).toBeNull()
    expect(origin).toMatchObject({ 'x-other': 'kept' })
    expect(Object.keys(origin).filter((name) => name.includes('geo'))).toEqual([])
  }
})

test.each<[Record<string, string>, string]>([
  [NAMES, 'TRUSTED_PROXIES: is missing; PROXY_COUNTRY_HEADER requires it'],
  [{ PROXY_CITY_HEADER: 'x geo' }, 'must be one name of letters, digits and hyphens'],
  ...['Cookie', 'host', 'User-Agent', 'X-Forwarded-For', 'CF-Connecting-IP', 'http-x-city'].map(
    (name) =>
      [{ PROXY_CITY_HEADER: name }, 'is a header with another meaning'] as [
        Record<string, string>,
        string,
      ],
  ),
  [
    { PROXY_CITY_HEADER: 'x-geo', PROXY_COUNTRY_HEADER: 'X-Geo', TRUSTED_PROXIES: PROXY },
    'is the header of PROXY_COUNTRY_HEADER as well',
  ],
])('%j is a mistake at the start: %s', (variables, message) => {
  const { error } = nodeEnvironment({}).safeParse({
    REDIS_URL: 'redis://127.0.0.1',
    PUBLIC_URL: 'http://127.0.0.1',
    ...variables,
  })
  const found = error?.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`) ?? []
  expect(found.join('\n')).toContain(message)
})
