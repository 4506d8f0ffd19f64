/** Each kind of credentials over real sockets, on each runtime: what the origin gets, and what callers see. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { RUNTIMES } from '../../harness/gateway.ts'
import { SECRET, startWorld, type World } from './world.ts'

const WRONG = 'a-secret-that-was-replaced'

describe.each(RUNTIMES)('on %s', (runtime) => {
  let world: World
  beforeAll(async () => {
    world = await startWorld({ runtime })
  })
  afterAll(() => world?.close())
  beforeEach(() => {
    world.requests.length = 0
  })

  test.each(['header', 'bearer', 'basic', 'query', 'token'])(
    'an origin with credentials of the kind %s accepts the gateway, and gets no credential of the caller',
    async (kind) => {
      const response = await world.send(`/${kind}/orders?page=2`)
      expect(response.status).toBe(200)
      expect(world.requests).toHaveLength(1)
      const [request] = world.requests
      expect(JSON.stringify(request?.rawHeaders)).not.toContain(world.token)
      expect(request?.url).toContain('page=2')
      expect(request?.headers['x-auth-assertion']).toBeDefined()
      if (kind === 'header') expect(request?.headers['x-api-key']).toBe(SECRET)
    },
  )

  test('a route has credentials at the origin of the environment, and other routes there have none', async () => {
    expect((await world.send('/own')).status).toBe(200)
    expect((await world.send('/plain')).status).toBe(200)
    expect(world.requests.at(-1)?.headers.authorization).toBeUndefined()
  })

  test('an MCP server gets the credentials of its routes', async () => {
    const response = await world.send('/mcp', {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2025-06-18',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
    })
    expect(response.status).toBe(200)
    expect(world.requests[0]?.headers['x-api-key']).toBe(SECRET)
  })

  test.each([
    'api_key=mine',
    'API_KEY=mine',
    'api%5Fkey=mine',
    'api.key=mine',
    'api+key=mine',
    'api_key[]=mine',
    'a=1;api_key=mine',
    'api_key=mine&api_key=mine',
  ])('a caller cannot send the parameter of the credentials as %s', async (query) => {
    const response = await world.send(`/query/orders?${query}&b=%2f`)
    expect(response.status).toBe(200)
    const url = world.requests[0]?.url ?? ''
    expect(url).not.toContain('mine')
    expect(url).toContain('b=%2f&api_key=')
  })

  test('a redirect of the origin does not show the parameter of the credentials', async () => {
    const response = await world.send('/query/moved?page=2')
    expect(response.status).toBe(302)
    expect(response.headers.get('location')).toMatch(/\/query\/there\?page=2&api_key=$/)
    expect([await response.text(), response.headers.get('etag')]).toEqual(['', null])
  })

  test('no header field of a response shows the value, in whatever form the origin repeats it', async () => {
    const response = await world.send('/query/log-in?page=2')
    expect(response.status).toBe(302)
    const next = encodeURIComponent('/orders?page=2&api_key=')
    const again = encodeURIComponent(next).toLowerCase()
    expect(response.headers.get('location')).toContain(`?next=${next}&again=${again}`)
    expect(response.headers.getSetCookie()).toEqual(['last=""; Path=/', `next=${next}`, 'kept=1'])
    expect(response.headers.get('x-query')).toBe('??page=2&api_key=')
    expect(JSON.stringify([...response.headers])).not.toMatch(/gateway(?:\+|%)/)
  })

  test('a refused caller does not make the gateway show its credentials', async () => {
    const response = await world.send('/header/orders', { headers: { authorization: 'Bearer no' } })
    expect(response.status).toBe(401)
    expect(world.requests).toEqual([])
  })

  test('concurrent requests fetch one token', async () => {
    const other = await startWorld({ runtime })
    try {
      const all = await Promise.all(Array.from({ length: 20 }, () => other.send('/token/orders')))
      expect(all.map(({ status }) => status)).toEqual(Array(20).fill(200))
      expect(other.fetches()).toBe(1)
    } finally {
      await other.close()
    }
  })
})

describe('a secret that the origin does not accept', () => {
  let world: World
  beforeAll(async () => {
    world = await startWorld({ secret: WRONG })
  })
  afterAll(() => world?.close())

  test.each(['header', 'bearer', 'basic', 'query'])(
    'is an outage of the origin for callers with the kind %s, and its reason is audited',
    async (kind) => {
      const response = await world.send(`/${kind}/orders`)
      const text = await response.text()
      expect(response.status).toBe(502)
      expect(JSON.parse(text)).toMatchObject({ code: 'origin_unreachable' })
      expect(response.headers.get('www-authenticate')).toBeNull()
      expect(text).not.toContain('refuses the key')
      const event = world.gateway.events.at(-1)
      expect(event).toMatchObject({ decision: 'error', reason: 'origin:unauthorized' })
      expect(JSON.stringify([...response.headers, text, event])).not.toContain(WRONG)
    },
  )

  test('a 401 on a route that forwards the credential of the caller is returned: it may be about the caller', async () => {
    const response = await world.send('/both/orders')
    expect(response.status).toBe(401)
    expect(world.requests.at(-1)?.headers.authorization).toBe(`Bearer ${world.token}`)
  })
})
