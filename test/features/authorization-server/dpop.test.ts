import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ath, createProver as createBareProver } from '../../access/tokens/prover.ts'
import { PUBLIC_URL, startGateway, type TestClient, type TestGateway } from './gateway.ts'

const TOKEN_URL = `${PUBLIC_URL}/oauth/token`
const GRANT = { grant_type: 'client_credentials' }

interface ProofOptions {
  readonly htm?: string
  readonly jti?: string
  readonly nonce?: string
  /** The token that the request presents. */
  readonly token?: string
}

interface Prover {
  readonly thumbprint: string
  /** Creates a proof with the current time for a POST to `url`; `htm` overrides the method. */
  proof(url: string, options?: ProofOptions): Promise<string>
}

async function createProver(): Promise<Prover> {
  const { proof, thumbprint } = await createBareProver()
  return {
    thumbprint,
    proof: (htu, { token, ...claims } = {}) =>
      proof({
        htm: 'POST',
        htu,
        jti: crypto.randomUUID(),
        iat: Math.floor(Date.now() / 1000),
        ...claims,
        ath: token === undefined ? undefined : ath(token),
      }),
  }
}

let gateway: TestGateway
let client: TestClient
let alice: Prover
let mallory: Prover
beforeAll(async () => {
  gateway = await startGateway()
  client = await gateway.createClient({ roles: ['reader'] })
  alice = await createProver()
  mallory = await createProver()
})
afterAll(() => gateway.close())

const by = async (prover: Prover, options?: ProofOptions) => ({
  headers: { DPoP: await prover.proof(TOKEN_URL, options) },
})

async function call(token: string, prover?: Prover) {
  const url = `${PUBLIC_URL}/orders`
  const proof = prover && (await prover.proof(url, { htm: 'GET', token }))
  const scheme = prover === undefined ? 'Bearer' : 'DPoP'
  return gateway.call(token, { Authorization: `${scheme} ${token}`, ...(proof && { DPoP: proof }) })
}

describe('the challenge to a token that is refused', () => {
  const challengeTo = async (authorization: string, prover: Prover, path = '/orders') => {
    const [, token = ''] = authorization.split(' ')
    const proof = await prover.proof(PUBLIC_URL + path, { htm: 'GET', token })
    const before = gateway.originCalls()
    const { status, headers } = await gateway.send(
      path,
      { method: 'GET' },
      { headers: { Authorization: authorization, DPoP: proof }, address: gateway.newAddress() },
    )
    expect([status, gateway.originCalls()]).toEqual([401, before])
    return headers.get('www-authenticate')
  }
  const ofDpop = /^DPoP realm="portcullis", error="invalid_token", algs="[^"]+", resource_metadata=/
  const ofBearer = /^Bearer realm="portcullis", error="invalid_token", resource_metadata=/

  test('has the scheme DPoP for a token of another key, a revoked one and no token', async () => {
    const { body } = await gateway.token(client, GRANT, await by(alice))
    const authorization = `DPoP ${body.access_token}`
    expect(await challengeTo(authorization, mallory)).toMatch(ofDpop)
    await gateway.revoke(client, body.access_token)
    expect(await challengeTo(authorization, alice)).toMatch(ofDpop)
    expect(await challengeTo('DPoP garbage', alice)).toMatch(ofDpop)
  })

  test('has the scheme Bearer for a request with that scheme, unless the route needs a proof', async () => {
    expect(await challengeTo('Bearer garbage', alice)).toMatch(ofBearer)
    expect(await challengeTo('Bearer garbage', alice, '/proven')).toMatch(ofDpop)
  })
})

describe('a DPoP proof at the token endpoint', () => {
  test('binds the token to its key, and only that key can use the token', async () => {
    const { body } = await gateway.token(client, GRANT, await by(alice))
    expect(body.token_type).toBe('DPoP')
    expect(decodeJwt(body.access_token).cnf).toEqual({ jkt: alice.thumbprint })
    expect((await call(body.access_token, alice)).status).toBe(200)
    const before = gateway.originCalls()
    expect((await call(body.access_token)).status).toBe(401)
    expect((await call(body.access_token, mallory)).status).toBe(401)
    expect(gateway.originCalls()).toBe(before)
  })

  test.each([`${PUBLIC_URL}/reports`, 'https://evil.test/orders'])(
    'for %s does not open that URL with the token',
    async (url) => {
      const { body } = await gateway.token(client, GRANT, await by(alice))
      const token = body.access_token
      const before = gateway.originCalls()
      const proof = await alice.proof(url, { htm: 'GET', token })
      const headers = { Authorization: `DPoP ${token}`, DPoP: proof }
      const options = { headers, address: gateway.newAddress() }
      const refused = await gateway.send('/orders', { method: 'GET' }, options)
      expect(refused.status).toBe(401)
      expect(gateway.originCalls()).toBe(before)
    },
  )

  test('is accepted once', async () => {
    const proof = await by(alice)
    expect((await gateway.token(client, GRANT, proof)).status).toBe(200)
    const again = await gateway.token(client, GRANT, proof)
    expect(again).toMatchObject({ status: 400, body: { error: 'invalid_dpop_proof' } })
    for (const grant of [
      () => gateway.exchange(client, '', {}, proof),
      async () => gateway.exchange(client, await gateway.login(), {}, proof),
    ])
      expect((await grant()).status).toBe(400)
  })

  test.each([
    ['for another method', { htm: 'GET' }],
    ['without a jti', { jti: '' }],
  ])('%s is refused', async (_, options) => {
    const { status, body } = await gateway.token(client, GRANT, await by(alice, options))
    expect({ status, error: body.error }).toEqual({ status: 400, error: 'invalid_dpop_proof' })
  })

  test.each([
    `${PUBLIC_URL}/oauth/revoke`,
    `${PUBLIC_URL}/oauth/token/`,
    'https://evil.test/oauth/token',
    TOKEN_URL.replace(/^https/, 'http'),
  ])('for the URL %s is refused', async (url) => {
    // Refusals are counted by address, and the other tests here use the default address.
    const options = { headers: { DPoP: await alice.proof(url) }, address: gateway.newAddress() }
    const { status, body } = await gateway.token(client, GRANT, options)
    expect({ status, error: body.error }).toEqual({ status: 400, error: 'invalid_dpop_proof' })
  })

  test('for another spelling of the URL, or with a query, is accepted', async () => {
    for (const url of [`${TOKEN_URL}?a=b#c`, TOKEN_URL.replace('token', '%74oken')]) {
      const headers = { DPoP: await alice.proof(url) }
      expect((await gateway.token(client, GRANT, { headers })).status, url).toBe(200)
    }
  })

  test('that is malformed is refused, not ignored', async () => {
    for (const DPoP of ['x', '', `${(await by(alice)).headers.DPoP}, x`]) {
      const { body } = await gateway.token(client, GRANT, { headers: { DPoP } })
      expect(body.error, DPoP).toBe('invalid_dpop_proof')
    }
  })

  test('is required of clients that are registered as DPoP-bound', async () => {
    const bound = await gateway.createClient({ dpopBound: true })
    expect((await gateway.token(bound, GRANT)).body.error).toBe('invalid_dpop_proof')
    expect((await gateway.token(bound, GRANT, await by(alice))).status).toBe(200)
  })
})

describe('a DPoP-bound session', () => {
  const open = async (tokenFormat: 'jwt' | 'opaque' = 'jwt') => {
    const mine = await gateway.createClient({ tokenFormat })
    const { body } = await gateway.exchange(mine, await gateway.login(), {}, await by(alice))
    return { mine, body }
  }

  test.each(['jwt', 'opaque'] as const)(
    'is refreshed with a proof by any key of its confidential client (%s)',
    async (format) => {
      const { mine, body } = await open(format)
      expect(body.token_type).toBe('DPoP')
      const none = await gateway.refresh(mine, body.refresh_token)
      expect(none.body.error).toBe('invalid_dpop_proof')
      const other = await gateway.refresh(mine, body.refresh_token, {}, await by(mallory))
      expect((await call(other.body.access_token, mallory)).status).toBe(200)
      expect((await call(other.body.access_token, alice)).status).toBe(401)
      const next = await gateway.refresh(mine, other.body.refresh_token, {}, await by(alice))
      expect(next).toMatchObject({ status: 200, body: { token_type: 'DPoP' } })
      expect((await call(next.body.access_token, alice)).status).toBe(200)
      expect((await call(next.body.access_token)).status).toBe(401)
    },
  )

  test('keeps its refresh token when a proof is replayed [S38]', async () => {
    const { mine, body } = await open()
    const proof = await by(alice)
    const next = await gateway.refresh(mine, body.refresh_token, {}, proof)
    const replay = await gateway.refresh(mine, next.body.refresh_token, {}, proof)
    expect(replay.body.error).toBe('invalid_dpop_proof')
    const third = await gateway.refresh(mine, next.body.refresh_token, {}, await by(alice))
    expect(third.status).toBe(200)
  })

  test('gives a narrower token only to the holder of its key', async () => {
    const { mine, body } = await open()
    const token = body.access_token
    expect((await gateway.exchange(mine, token)).body.error).toBe('invalid_dpop_proof')
    const other = await gateway.exchange(mine, token, {}, await by(mallory))
    expect(other.body.error).toBe('invalid_request')
    const own = await gateway.exchange(mine, token, {}, await by(alice))
    expect(decodeJwt(own.body.access_token).cnf).toEqual({ jkt: alice.thumbprint })
  })
})

test('where nonces are required, a refusal has a nonce, and every response to a proof has the next one', async () => {
  const strict = await startGateway({ nonceRequired: true })
  try {
    const mine = await strict.createClient()
    const first = await strict.token(mine, GRANT, await by(alice))
    expect(first).toMatchObject({ status: 400, body: { error: 'use_dpop_nonce' } })
    const nonce = first.headers.get('dpop-nonce') ?? ''
    const second = await strict.token(mine, GRANT, await by(alice, { nonce }))
    expect(second.status).toBe(200)
    expect(second.headers.get('dpop-nonce')).toMatch(/^\S+$/)
    const wrong = await strict.token(mine, GRANT, await by(alice, { nonce: 'x' }))
    expect(wrong.body.error).toBe('use_dpop_nonce')
    expect((await strict.token(mine, GRANT)).headers.get('dpop-nonce')).toBeNull()
  } finally {
    await strict.close()
  }
})
