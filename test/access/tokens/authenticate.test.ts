import { Hono } from 'hono'
import { describe, expect, it } from 'vitest'
import { createTokenVerifier } from '../../../src/access/tokens/verifier.ts'
import { authenticate } from '../../../src/middleware/authenticate.ts'
import { callerOf } from '../../../src/middleware/context.ts'
import { problemHandler } from '../../../src/middleware/problem-handler.ts'
import { refusing, startProvider } from './provider.ts'
import { createSigner, issuerOf, NOW_MS, NOW_SECONDS } from './signer.ts'

const signer = await createSigner('ES256')
const token = await signer.token()

function gateway(issuers = [issuerOf([signer.publicJwk])]) {
  const verifier = createTokenVerifier({ issuers, now: () => NOW_MS })
  const reached: string[] = []
  const app = new Hono()
  app.onError(problemHandler())
  app.all('/private', authenticate({ verifier }), (c) => {
    reached.push(callerOf(c)?.subject ?? 'anonymous')
    return c.text('ok')
  })
  app.all('/public', authenticate({ verifier, anonymous: true }), (c) => {
    reached.push(callerOf(c)?.subject ?? 'anonymous')
    return c.text('ok')
  })
  const send = (path: string, headers: [string, string][] = [], init: RequestInit = {}) =>
    app.request(path, { ...init, headers: new Headers(headers) })
  return { send, reached }
}

const authorization = (value: string): [string, string][] => [['authorization', value]]

describe('authenticate', () => {
  it('accepts a valid token and sets its principal', async () => {
    const { send, reached } = gateway()
    expect((await send('/private', authorization(`Bearer ${token}`))).status).toBe(200)
    expect((await send('/private', authorization(`bearer ${token}`))).status).toBe(200)
    expect((await send('/public', authorization(`Bearer ${token}`))).status).toBe(200)
    expect(reached).toEqual(['alice', 'alice', 'alice'])
  })

  it('answers a request without credentials with a challenge without an error attribute, and the handler does not run [S29]', async () => {
    const { send, reached } = gateway()
    for (const headers of [[], authorization('Basic YTpi')]) {
      const response = await send('/private', headers)
      expect(response.status).toBe(401)
      expect(response.headers.get('www-authenticate')).toMatch(/^Bearer /)
      expect(response.headers.get('www-authenticate')).not.toContain('error=')
    }
    expect(reached).toEqual([])
  })

  it('answers a repeated header with invalid_request on every route [S28]', async () => {
    const { send, reached } = gateway()
    const doubled: [string, string][] = [
      ...authorization(`Bearer ${token}`),
      ...authorization(`Bearer ${token}`),
    ]
    for (const headers of [doubled, authorization(`Bearer ${token}, Bearer ${token}`)]) {
      for (const path of ['/private', '/public']) {
        const response = await send(path, headers)
        expect(response.status).toBe(400)
        expect(response.headers.get('www-authenticate')).toContain('error="invalid_request"')
      }
    }
    expect(reached).toEqual([])
  })

  it('answers a malformed header with invalid_token on every route, and never with 500 [S28]', async () => {
    const { send, reached } = gateway()
    const bad = [
      `Bearer`,
      `Bearer ${token}=`,
      `Bearer x.y.z`,
      `Bearer ${await signer.token({ exp: NOW_SECONDS - 60 })}`,
    ]
    for (const headers of bad.map(authorization)) {
      for (const path of ['/private', '/public']) {
        const response = await send(path, headers)
        expect(response.status).toBe(401)
        expect(response.headers.get('www-authenticate')).toContain('error="invalid_token"')
        expect(await response.text()).not.toContain(token.slice(0, 20))
      }
    }
    expect(reached).toEqual([])
  })

  it('treats a caller without a header as anonymous if the route allows it', async () => {
    const { send, reached } = gateway()
    expect((await send('/public')).status).toBe(200)
    expect((await send('/public', authorization('Basic YTpi'))).status).toBe(401)
    expect(reached).toEqual(['anonymous'])
  })

  it('ignores a token in the query, the body or a cookie [S27]', async () => {
    const { send, reached } = gateway()
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const responses = await Promise.all([
      send(`/private?access_token=${token}`),
      send('/private', Object.entries(form), { method: 'POST', body: `access_token=${token}` }),
      send('/private', [['cookie', `access_token=${token}; Authorization=Bearer ${token}`]]),
      send('/private', [
        ['x-authorization', `Bearer ${token}`],
        ['proxy-authorization', `Bearer ${token}`],
      ]),
    ])
    for (const response of responses) {
      expect(response.status).toBe(401)
      expect(response.headers.get('www-authenticate')).not.toContain('error=')
    }
    expect(reached).toEqual([])
  })

  it('answers 503 with Retry-After, never 401, while the provider is unreachable [R09]', async () => {
    const provider = await startProvider(refusing)
    const { send, reached } = gateway([issuerOf([], { jwks: undefined, jwksUri: provider.url })])
    for (const path of ['/private', '/public']) {
      const response = await send(path, authorization(`Bearer ${token}`))
      expect(response.status).toBe(503)
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    }
    expect(reached).toEqual([])
    await provider.close()
  })
})
