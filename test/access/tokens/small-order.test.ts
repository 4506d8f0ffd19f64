import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ed25519Fault } from '../../../src/crypto/weak-keys.ts'
import { newClientSchema } from '../../../src/features/authorization-server/schemas/new-client.ts'
import { issuers } from '../../../src/validators/issuer.ts'
import { signingKeys } from '../../../src/validators/signing-jwk.ts'
import { type Running, startWorkerd } from '../../origin/workerd.ts'
import { bytesOf, forge, SMALL_ORDER_KEYS, SMALL_ORDER_POINTS, weakJwk } from './forger.ts'
import { goodProof, goodRequest, outcome as proofOutcome, verifierOf } from './prover.ts'
import { keySetOn, publishing, startProvider } from './provider.ts'
import { AUDIENCE, createSigner, goodClaims, ISSUER } from './signer.ts'

const P = 2n ** 255n - 19n
const sound = await createSigner('EdDSA', 'sound')

const forgedToken = (x: string, kid: string) =>
  forge(x, { alg: 'EdDSA', kid, typ: 'at+jwt' }, (attempt) => ({
    ...goodClaims,
    jti: `forged-${attempt}`,
  }))
const { kid: _, ...anonymous } = weakJwk('')
const forgedProof = (x: string, claims: object = goodProof) =>
  forge(x, { alg: 'EdDSA', typ: 'dpop+jwt', jwk: { ...anonymous, x } }, (attempt) => ({
    ...claims,
    jti: `forged-${attempt}`,
  }))

describe('an Ed25519 key of small order [S08, S72]', () => {
  it('is one of eight points in fourteen encodings', () => {
    expect(new Set(SMALL_ORDER_POINTS.map(({ x, y }) => `${x} ${y}`)).size).toBe(8)
    expect(new Set(SMALL_ORDER_KEYS).size).toBe(14)
  })

  it.each(SMALL_ORDER_KEYS)('is ignored in a key set: %s', async (x) => {
    const ignored: string[] = []
    const provider = await startProvider(publishing([weakJwk(x), sound.publicJwk]))
    const { find } = keySetOn(provider.url, {
      algorithms: ['EdDSA'],
      report: (incident) => {
        if (incident.kind === 'keys_ignored') {
          ignored.push(...incident.ignored.map(({ check }) => check))
        }
      },
    })
    expect(await find({ kid: 'weak', alg: 'EdDSA' })).toBe('token_rejected:kid_unknown')
    expect(await find(sound)).toBe('ok')
    expect(ignored).toEqual([expect.stringMatching(/^x_(small_order|encoding)$/)])
    await provider.close()
  })

  it.each(SMALL_ORDER_KEYS)('is refused in every configuration: %s', (x) => {
    const jwks = { keys: [weakJwk(x)] }
    const issuer = issuers.safeParse([{ issuer: ISSUER, audience: AUDIENCE, jwks }])
    expect(issuer.error?.issues[0]?.message).toMatch(/^is not usable \(x_(small_order|encoding)\)$/)
    const client = { name: 'app', grants: ['client_credentials'] }
    const good = newClientSchema.safeParse({ ...client, jwks: { keys: [sound.publicJwk] } })
    expect(good.success).toBe(true)
    const weak = newClientSchema.safeParse({ ...client, jwks })
    expect(weak.error?.issues[0]?.path).toEqual(['jwks'])
    const own = signingKeys.safeParse({ keys: [{ ...sound.privateJwk, x }] })
    expect(own.error?.issues[0]?.message).toMatch(/too weak \(x_(small_order|encoding)\)$/)
  })

  it.each(SMALL_ORDER_KEYS)('is refused in a DPoP proof: %s', async (x) => {
    const header = forgedProof(x)
    expect(await proofOutcome(() => verifierOf().verify({ ...goodRequest, header }))).toMatch(
      /^invalid_dpop_proof:jwk_x_(small_order|encoding)$/,
    )
  })
})

describe('other encodings of Ed25519 keys [S08, S72]', () => {
  it('with a coordinate at or above the prime are refused', () => {
    for (let y = P; y < 2n ** 255n; y++) {
      for (const sign of [0, 1] as const) expect(ed25519Fault(bytesOf(y, sign))).toBe('encoding')
    }
  })

  it('that are not a point are refused, about half of all coordinates', () => {
    const faults = Array.from({ length: 200 }, (_, n) => ed25519Fault(bytesOf(BigInt(n + 2), 0)))
    expect(new Set(faults)).toEqual(new Set([undefined, 'point']))
    const bad = faults.filter((fault) => fault !== undefined).length
    expect(bad).toBeGreaterThan(60)
    expect(bad).toBeLessThan(140)
  })

  it('that were generated are accepted', async () => {
    for (let n = 0; n < 50; n++) {
      const { publicJwk } = await createSigner('EdDSA')
      expect(ed25519Fault(Buffer.from(publicJwk.x ?? '', 'base64url'))).toBeUndefined()
    }
  })

  it('in another spelling of the same bytes are refused', async () => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const x = sound.publicJwk.x ?? ''
    const last = alphabet.indexOf(x.at(-1) ?? '')
    const respelled = `${x.slice(0, -1)}${alphabet[last + 1]}`
    expect(Buffer.from(respelled, 'base64url')).toEqual(Buffer.from(x, 'base64url'))
    const jwks = { keys: [{ ...sound.publicJwk, x: respelled }] }
    const parsed = issuers.safeParse([{ issuer: ISSUER, audience: AUDIENCE, jwks }])
    expect(parsed.error?.issues[0]?.message).toBe('is not usable (x_base64url)')
  })
})

describe('in workerd [S08, S72]', () => {
  let tokens: Running
  let proofs: Running
  beforeAll(async () => {
    const start = (name: string) =>
      startWorkerd({
        entry: join(import.meta.dirname, `workers/${name}.ts`),
        vars: { NONCE_SECRET: 'uYf2nW3vQk0rT8bLx5cZp1dHs7gJe4aM', NOW_MS: '1800000000000' },
      })
    ;[tokens, proofs] = await Promise.all([start('verifier'), start('proofs')])
  })
  afterAll(() => Promise.all([tokens.stop(), proofs.stop()]))

  it('WebCrypto verifies signatures that anyone can create under a key of small order', async () => {
    for (const x of SMALL_ORDER_KEYS) {
      const verdict = await fetch(`http://127.0.0.1:${tokens.port}/bare`, {
        method: 'POST',
        body: JSON.stringify({ x, token: forgedToken(x, 'weak') }),
      })
      expect(await verdict.text(), x).toBe('true')
    }
  })

  it('a token that is forged under a key of small order is refused', async () => {
    const keys = SMALL_ORDER_KEYS.map((x, index) => weakJwk(x, `weak-${index}`))
    const provider = await startProvider(publishing([...keys, sound.publicJwk]))
    const verifyInWorkerd = async (token: string) => {
      const response = await fetch(`http://127.0.0.1:${tokens.port}/`, {
        headers: { authorization: `Bearer ${token}`, 'x-jwks-uri': provider.url },
      })
      return `${response.status} ${await response.text()}`
    }
    expect(await verifyInWorkerd(await sound.token())).toBe('200 alice')
    for (const { x, kid } of keys) {
      expect(await verifyInWorkerd(forgedToken(x, kid)), x).toBe(
        '401 {"code":"token_rejected","check":"kid_unknown"}',
      )
    }
    await provider.close()
  })

  it('a proof that is forged under a key of small order is refused', async () => {
    const origin = `http://127.0.0.1:${proofs.port}`
    const nonce = await (await fetch(`${origin}/nonce`)).text()
    for (const x of SMALL_ORDER_KEYS) {
      const proof = forgedProof(x, { ...goodProof, htu: `${origin}/orders`, nonce })
      const response = await fetch(`${origin}/orders`, { headers: { DPoP: proof } })
      expect([response.status, await response.json()], x).toEqual([
        401,
        {
          code: 'invalid_dpop_proof',
          check: expect.stringMatching(/^jwk_x_(small_order|encoding)$/),
        },
      ])
    }
  })
})
