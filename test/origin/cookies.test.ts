import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { headersOf, startHttpOrigin } from './origin-server.ts'
import { RUNTIMES, startForwarding } from './runtimes.ts'
import { exchange } from './wire.ts'

const FORWARDING = `Test-Route: ${JSON.stringify({ forwardCookies: true })}`

let origin: Awaited<ReturnType<typeof startHttpOrigin>>
const gateways = new Map<string, { port: number; stop: () => Promise<void> }>()

beforeAll(async () => {
  origin = await startHttpOrigin((_request, response) => response.end())
  const originUrl = `http://127.0.0.1:${origin.port}`
  for (const runtime of RUNTIMES)
    gateways.set(runtime.name, await startForwarding(runtime, originUrl))
})
beforeEach(() => {
  origin.requests.length = 0
})
afterAll(() => Promise.all([...gateways.values(), { stop: origin.close }].map((it) => it.stop())))

/** Sends raw header lines and returns every `Cookie` field of the one request that arrived. */
async function arrived(runtime: string, ...lines: string[]): Promise<string[]> {
  const port = gateways.get(runtime)?.port ?? 0
  const head = ['GET /orders HTTP/1.1', 'Host: gateway.test', ...lines].join('\r\n')
  expect((await exchange(port, `${head}\r\n\r\n`)).status).toBe(200)
  expect(origin.requests).toHaveLength(1)
  return origin.requests.flatMap((request) =>
    headersOf(request)
      .filter(([name]) => name === 'cookie')
      .map(([, value]) => value),
  )
}

/** Names of the cookies in a field, as an origin reads them: RFC 6265 section 5.4. */
const namesIn = (field = '') => field.split(';').map((pair) => pair.split('=')[0]?.trim())

describe.each(RUNTIMES)('cookies on $name', ({ name: runtime }) => {
  test.each([
    'lang=de,__Host-session=evil; __Host-session=good',
    'lang=de, __Host-session=evil; __Host-session=good',
    'prefs={"a":1,"b":[2, 3]}; sid=1',
    'quoted="a, b; c=d"; sid=1',
    'empty=; =nameless; flag; sid=1',
    'a=1;b=2;;  c=3',
    'a=1; a=2; A=3',
    'percent=%2C%3B; plus=a+b==',
    'tab=a\tb',
    'utf8=caf\xc3\xa9, \xe2\x82\xac; sid=1',
  ])('%j arrives byte for byte [S68]', async (cookie) => {
    expect(await arrived(runtime, FORWARDING, `Cookie: ${cookie}`)).toEqual([cookie])
  })

  test('a comma never creates a cookie that the client did not send [S68]', async () => {
    const cookie = 'a=1,__Host-a=2, __Secure-b=3,\t__Host-c=4;d=5'
    const [field] = await arrived(runtime, FORWARDING, `Cookie: ${cookie}`)
    expect(namesIn(field)).toEqual(['a', 'd'])
  })

  test('several Cookie fields arrive as the one field that the platform joins [S68]', async () => {
    const fields = await arrived(runtime, FORWARDING, 'Cookie: a=1; b=2', 'cookie: c=3; d=4')
    // A browser sends only one (RFC 6265 section 5.4). Each platform joins them in its own way.
    expect(fields).toEqual([runtime === 'workerd' ? 'a=1; b=2, c=3; d=4' : 'a=1; b=2; c=3; d=4'])
  })

  test('bytes that are not UTF-8 do not change a separator [S68]', async () => {
    const [field] = await arrived(runtime, FORWARDING, 'Cookie: a=\xe9\xff; b=2')
    // workerd decodes headers as UTF-8 and encodes them again; \xef\xbf\xbd is U+FFFD.
    const changed = 'a=\xef\xbf\xbd\xef\xbf\xbd; b=2'
    expect(field).toBe(runtime === 'workerd' ? changed : 'a=\xe9\xff; b=2')
  })

  test('without cookies, or with an empty field, the origin receives no cookie [S68]', async () => {
    expect((await arrived(runtime, FORWARDING)).join('')).toBe('')
    origin.requests.length = 0
    expect((await arrived(runtime, FORWARDING, 'Cookie:')).join('')).toBe('')
  })

  test('a route that does not forward cookies forwards none [S59]', async () => {
    expect(await arrived(runtime, 'Cookie: a=1,b=2', 'Cookie: c=3')).toEqual([])
  })
})
