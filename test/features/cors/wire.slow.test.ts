/** CORS headers on the wire, on both runtimes. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type CorsGateway, RUNTIMES, startGateway } from './gateway.ts'
import { PREVIEW } from './policy.ts'

const PAGE = 'https://app.example.com'
const EVIL = 'https://evil.example'

describe.each(RUNTIMES)('on %s', (runtime) => {
  let gateway: CorsGateway
  let reader: string

  beforeAll(async () => {
    gateway = await startGateway(runtime, PAGE)
    reader = `Bearer ${await gateway.token({ claims: { roles: ['reader'] } })}`
  })
  afterAll(async () => {
    await gateway?.close()
  })
  beforeEach(() => {
    gateway.reached.length = 0
  })

  const send = (path: string, headers: Record<string, string>, method = 'GET') =>
    fetch(gateway.url + path, { method, headers })
  const preflight = (path: string, intended: string, headers: Record<string, string> = {}) =>
    send(path, { Origin: PAGE, 'Access-Control-Request-Method': intended, ...headers }, 'OPTIONS')
  const allowOrigin = ({ headers }: Response) => headers.get('Access-Control-Allow-Origin')
  const corsHeaders = ({ headers }: Response) =>
    [...headers.keys()].filter((name) => name.startsWith('access-control-'))

  test('a response names the one page that may read it, and what the page may read', async () => {
    const response = await send('/orders', { Origin: PAGE, Authorization: reader })
    expect(response.status).toBe(200)
    expect(allowOrigin(response)).toBe(PAGE)
    expect(response.headers.get('Vary')).toMatch(/(^|, )Origin($|,)/)
    expect(response.headers.get('Access-Control-Allow-Credentials')).toBeNull()
    const exposed = response.headers.get('Access-Control-Expose-Headers')
    expect(exposed).toBe(
      'RateLimit, RateLimit-Policy, Retry-After, X-Request-Id, DPoP-Nonce, WWW-Authenticate, ETag',
    )
  })

  test.each([
    ['another origin', EVIL],
    ['no origin', undefined],
    ['the opaque origin', 'null'],
    ['the origin with another port', `${PAGE}:8443`],
    ['the origin with another scheme', 'http://app.example.com'],
    ['the origin in capitals', 'https://APP.example.com'],
    ['the origin with a path', `${PAGE}/`],
    ['a list with the origin', `${PAGE}, ${EVIL}`],
    ['a longer host', 'https://app.example.com.evil.example'],
  ])('with %s, the response has no CORS headers, but varies by the origin', async (_, origin) => {
    const headers = { Authorization: reader, ...(origin !== undefined && { Origin: origin }) }
    const response = await send('/orders', headers)
    expect(response.status).toBe(200)
    expect(corsHeaders(response)).toEqual([])
    expect(response.headers.get('Vary')).toMatch(/(^|, )Origin($|,)/)
  })

  test.each([
    [401, 'GET', '/orders', { isMatched: true, isKnown: false }],
    [403, 'POST', '/orders', { isMatched: true, isKnown: true }],
    [404, 'GET', '/unknown', { isMatched: false, isKnown: false }],
    [405, 'PATCH', '/orders', { isMatched: false, isKnown: false }],
    [400, 'GET', '/orders%2f1', { isMatched: false, isKnown: false }],
  ])('a page can read a %i', async (status, method, path, { isMatched, isKnown }) => {
    const headers = { Origin: PAGE, ...(isKnown && { Authorization: reader }) }
    const response = await send(path, headers, method)
    expect([response.status, allowOrigin(response)]).toEqual([status, PAGE])
    expect(response.headers.get('Content-Type')).toBe('application/problem+json')
    expect(gateway.reached).toEqual([])
    const toOther = await send(path, { ...headers, Origin: EVIL }, method)
    // Rules for every page, of another route, are the first that allow this one.
    expect([toOther.status, allowOrigin(toOther)]).toEqual([status, isMatched ? null : '*'])
  })

  test('a page can read a 429, with its limit', async () => {
    const own = `Bearer ${await gateway.token({ claims: { sub: 'few', roles: ['reader'] } })}`
    const answers: Response[] = []
    for (let count = 0; count < 4; count++)
      answers.push(await send('/few', { Origin: PAGE, Authorization: own }))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429])
    expect(answers.map(allowOrigin)).toEqual([PAGE, PAGE, PAGE, PAGE])
    expect(answers[3]?.headers.get('RateLimit')).toMatch(/^"few";r=0;t=\d+$/)
    expect(gateway.reached.length).toBe(3)
  })

  test('a route without rules has no CORS headers, whatever its origin sends [S60]', async () => {
    const response = await send('/closed', { Origin: PAGE, Authorization: reader })
    expect([response.status, corsHeaders(response)]).toEqual([200, []])
  })

  test.each(['GET', 'HEAD', 'POST'])(
    'a preflight request for %s is answered without a token',
    async (method) => {
      const headers = { 'Access-Control-Request-Headers': 'authorization,content-type' }
      const response = await preflight('/orders', method, headers)
      expect(response.status).toBe(204)
      expect(allowOrigin(response)).toBe(PAGE)
      expect(response.headers.get('Access-Control-Allow-Methods')).toBe(method)
      expect(response.headers.get('Access-Control-Allow-Headers')).toBe(
        'Authorization, Content-Type, DPoP',
      )
      expect(response.headers.get('Access-Control-Max-Age')).toBe('7200')
      expect(response.headers.get('X-Request-Id')).not.toBeNull()
      expect(gateway.reached).toEqual([])
    },
  )

  test('a preflight request of another page gets no CORS headers', async () => {
    const response = await preflight('/orders', 'POST', { Origin: EVIL })
    expect([response.status, corsHeaders(response)]).toEqual([204, []])
    expect(gateway.reached).toEqual([])
  })

  test.each([
    ['a method without rules', '/orders', 'DELETE', 405],
    ['a method that the path does not have', '/orders', 'PATCH', 405],
    ['a route without rules', '/closed', 'GET', 405],
    ['a path of no route', '/unknown', 'GET', 404],
    ['an ambiguous path', '/orders%2f1', 'GET', 400],
    ['a row without rules above one with rules', '/files/secret', 'PUT', 405],
  ])('a preflight request for %s is refused', async (_, path, method, status) => {
    const response = await preflight(path, method)
    expect(response.status).toBe(status)
    expect(response.headers.get('Access-Control-Allow-Methods')).toBeNull()
    expect(gateway.reached).toEqual([])
  })

  test('OPTIONS that is no preflight request gets 405, and Allow does not name it', async () => {
    for (const headers of [{}, { Origin: PAGE }, { 'Access-Control-Request-Method': 'GET' }]) {
      const response = await send('/orders', headers, 'OPTIONS')
      expect([response.status, response.headers.get('Allow')]).toEqual([
        405,
        'DELETE, GET, HEAD, POST',
      ])
    }
  })

  test('credentials are allowed only where the rules say so', async () => {
    const response = await send('/cookies', { Origin: PAGE, Cookie: 'theme=dark' })
    expect(response.headers.get('Access-Control-Allow-Credentials')).toBe('true')
    expect(await response.json()).toEqual({ method: 'GET', cookie: 'theme=dark' })
    const ofOther = await send('/cookies', { Origin: EVIL, Cookie: 'theme=dark' })
    expect(corsHeaders(ofOther)).toEqual([])
    const asked = await preflight('/cookies', 'GET')
    expect(asked.headers.get('Access-Control-Allow-Credentials')).toBe('true')
    expect(asked.headers.get('Access-Control-Allow-Headers')).toBe(
      'Authorization, Content-Type, DPoP, X-Client',
    )
  })

  test('rules for every page are the same for all, without credentials', async () => {
    const responses = await Promise.all(
      [EVIL, 'null', undefined].map((origin) =>
        send('/open', origin === undefined ? {} : { Origin: origin }),
      ),
    )
    expect(responses.map(allowOrigin)).toEqual(['*', '*', '*'])
    for (const { headers } of responses) {
      expect(headers.get('Access-Control-Allow-Credentials')).toBeNull()
      expect(headers.get('Vary') ?? '').not.toMatch(/Origin/)
    }
  })

  test.each([
    [PREVIEW, PREVIEW],
    ['https://a.b.preview.example.com', null],
    ['https://.preview.example.com', null],
    ['https://preview.example.com', null],
    ['https://evil.example/.preview.example.com', null],
    ['https://user@a.preview.example.com', null],
  ])('a pattern stands for one label: %s', async (origin, allowed) => {
    const response = await send('/previews', { Origin: origin })
    expect([response.status, allowOrigin(response)]).toEqual([200, allowed])
  })

  test('preflight requests count by address in their own limits, and are refused beyond', async () => {
    const ask = () =>
      preflight('/previews', 'GET', {
        Origin: PREVIEW,
        'Access-Control-Request-Private-Network': 'true',
      })
    const first = await ask()
    expect(first.headers.get('Access-Control-Allow-Private-Network')).toBe('true')
    expect(first.headers.get('Access-Control-Max-Age')).toBe('60')
    expect(first.headers.get('RateLimit')).toMatch(/^"asked";r=1;t=\d+$/)
    expect((await ask()).status).toBe(204)
    const refused = await ask()
    expect([refused.status, allowOrigin(refused)]).toEqual([429, PREVIEW])
    expect(refused.headers.get('Retry-After')).not.toBeNull()
    expect((await send('/previews', { Origin: PREVIEW })).status).toBe(200)
  })

  test('a private network is not opened by rules that do not say so', async () => {
    const response = await preflight('/orders', 'GET', {
      'Access-Control-Request-Private-Network': 'true',
    })
    expect(response.status).toBe(204)
    expect(response.headers.get('Access-Control-Allow-Private-Network')).toBeNull()
  })

  // Last, because it ends Redis.
  test('while Redis fails, a page can read the 503 of a request and of a preflight request', async () => {
    await gateway.breakRedis()
    const answers = [
      await send('/orders', { Origin: PAGE, Authorization: reader }),
      await preflight('/few', 'GET'),
    ]
    expect(answers.map(({ status }) => status)).toEqual([503, 503])
    expect(answers.map(allowOrigin)).toEqual([PAGE, PAGE])
    expect(gateway.reached).toEqual([])
  })
})
