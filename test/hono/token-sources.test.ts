/** Tokens in headers and cookies for a Hono app. */
import { Hono } from 'hono'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Misconfigured } from '../../src/errors.ts'
import { AUDIENCE, ISSUER, mint } from '../harness/issuer.ts'
import { guardWith, type Surroundings, surroundings } from './app.ts'

const OTHER = 'https://other-issuer.test'
const COOKIE = '__Host-token'

let given: Surroundings
let token: string
let otherToken: string
beforeAll(async () => {
  given = await surroundings()
  token = await mint(given.key, { claims: { sub: 'eve' } })
  otherToken = await mint(given.key, { claims: { iss: OTHER, sub: 'mallory' } })
})
afterAll(() => given?.redis.close())
beforeEach(() => {
  given.events.length = 0
})

/** The first issuer names a header and a cookie, the second one `Authorization`. */
function app() {
  const jwks = { keys: [given.key.publicJwk] } as never
  const tokenSources = [{ header: 'X-Token' }, { cookie: COOKIE }]
  const reached: string[] = []
  const issuers = [
    { issuer: ISSUER, audience: AUDIENCE, jwks, tokenSources },
    { issuer: OTHER, audience: AUDIENCE, jwks },
  ]
  const guard = guardWith(given, { issuers })
  const routes = new Hono().use(guard)
  routes.all('/notes', guard.authenticated(), (c) => {
    reached.push(c.var.caller.subject)
    return c.text('note', 200, { 'Cache-Control': 'public, max-age=60', Vary: 'Accept' })
  })
  routes.get('/about', guard.public(), (c) => {
    reached.push(c.var.caller?.subject ?? 'anonymous')
    return c.text('about', 200, { 'Cache-Control': 'public, max-age=60' })
  })
  const send = (path: string, headers: Record<string, string>, method = 'GET') =>
    routes.request(`https://notes.test${path}`, { method, headers })
  return { send, reached }
}

describe('a guarded app', () => {
  test('reads the token of each issuer from its own sources', async () => {
    const { send, reached } = app()
    expect((await send('/notes', { 'X-Token': token })).status).toBe(200)
    expect((await send('/notes', { Cookie: `a=1; ${COOKIE}=${token}` })).status).toBe(200)
    expect((await send('/notes', { Authorization: `Bearer ${otherToken}` })).status).toBe(200)
    expect(reached).toEqual(['eve', 'eve', 'mallory'])
    const swapped = [
      { 'X-Token': otherToken },
      { Cookie: `${COOKIE}=${otherToken}` },
      { Authorization: `Bearer ${token}` },
    ]
    for (const headers of swapped) expect((await send('/notes', headers)).status).toBe(401)
    expect(reached).toHaveLength(3)
    expect(given.events.map(({ reason }) => reason).slice(3)).toEqual(
      Array(3).fill('token_rejected:source'),
    )
  })

  test('refuses two credentials before any handler', async () => {
    const { send, reached } = app()
    const response = await send('/notes', { 'X-Token': token, Cookie: `${COOKIE}=${token}` })
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { code: 'ambiguous_credentials' },
    ])
    expect(reached).toEqual([])
  })

  test('accepts a cookie with an unsafe method only from pages of its own origin', async () => {
    const { send, reached } = app()
    const post = (headers: Record<string, string>) =>
      send('/notes', { Cookie: `${COOKIE}=${token}`, ...headers }, 'POST')
    expect((await post({ Origin: 'https://notes.test' })).status).toBe(200)
    expect((await post({ 'Sec-Fetch-Site': 'same-origin' })).status).toBe(200)
    const forged = [
      {},
      { Origin: 'https://evil.test' },
      { Origin: 'https://notes.test', 'Sec-Fetch-Site': 'cross-site' },
    ]
    for (const headers of forged) {
      const response = await post(headers)
      expect([response.status, await response.json()]).toMatchObject([
        403,
        { code: 'cross_origin_request' },
      ])
    }
    expect(reached).toHaveLength(2)
  })

  test('keeps the response to a header or a cookie out of shared caches', async () => {
    const { send } = app()
    for (const headers of [{ 'X-Token': token }, { Cookie: `${COOKIE}=${token}` }]) {
      const response = await send('/notes', headers)
      expect(response.headers.get('cache-control')).toBe('private, max-age=60')
      expect(response.headers.get('vary')).toBe('Accept, X-Token, Cookie, Authorization')
    }
    const anonymous = await send('/about', {})
    expect(anonymous.headers.get('cache-control')).toBe('public, max-age=60')
    expect(anonymous.headers.get('vary')).toBe('X-Token, Cookie, Authorization')
  })

  test('leaves a response to Authorization unchanged, because RFC 9111 restricts shared caches', async () => {
    const response = await app().send('/notes', { Authorization: `Bearer ${otherToken}` })
    expect(response.headers.get('cache-control')).toBe('public, max-age=60')
  })

  test('refuses a query parameter as a source when it is built', () => {
    const tokenSources = [{ query: 'token' }] as never
    const build = () =>
      guardWith(given, { issuers: [{ issuer: ISSUER, audience: AUDIENCE, tokenSources }] })
    expect(build).toThrow(Misconfigured)
    expect(build).toThrow(/issuers\[0\]\.tokenSources\[0\]: .* a query parameter is not possible/)
  })
})
