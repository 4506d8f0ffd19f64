import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { credentialHash } from '../../../src/access/tokens/reference.ts'
import { publicKeySet } from '../../../src/access/tokens/signing-keys.ts'
import {
  createTokenIssuer,
  randomSeed,
  seededIds,
} from '../../../src/access/tokens/token-issuer.ts'
import { Denied, Unavailable } from '../../../src/errors.ts'
import { ALGORITHMS, bare, full, GATEWAY, issuing, keys, rememberingStore } from './issuing.ts'
import { NOW_MS, NOW_SECONDS } from './signer.ts'

const UUID4 = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/

afterEach(() => vi.restoreAllMocks())

describe('a JWT that the gateway issues', () => {
  it.each(ALGORITHMS)(
    'RFC 9068: names subject, audience and expiry, and an independent verifier accepts it (%s)',
    async (algorithm) => {
      const { issuer } = issuing()
      const confirmation = 'A'.repeat(43)
      const issued = await issuer.issue({ ...full, confirmation }, { algorithm })
      const { payload, protectedHeader } = await jwtVerify(
        issued.token,
        createLocalJWKSet(publicKeySet(keys)),
        { issuer: GATEWAY, audience: GATEWAY, typ: 'at+jwt', currentDate: new Date(NOW_MS) },
      )
      expect(protectedHeader).toEqual({ alg: algorithm, kid: algorithm, typ: 'at+jwt' })
      expect(payload).toEqual({
        iss: GATEWAY,
        aud: full.audiences,
        sub: 'alice',
        sub_iss: 'https://idp.test/',
        client_id: 'app',
        iat: NOW_SECONDS,
        exp: NOW_SECONDS + 900,
        jti: issued.tokenId,
        scope: 'orders:read orders:write',
        roles: full.roles,
        tenant: 'acme',
        sid: full.session,
        cnf: { jkt: confirmation },
      })
      expect(issued).toMatchObject({
        issuedAtSeconds: NOW_SECONDS,
        expiresAtSeconds: NOW_SECONDS + 900,
      })
    },
  )

  it.each(ALGORITHMS)(
    'is accepted by the gateway itself, with all its claims (%s)',
    async (algorithm) => {
      const { issuer, verifier } = issuing()
      const { token, tokenId, tokenIdHash } = await issuer.issue(full, { algorithm })
      expect(await verifier.verify(token)).toMatchObject({
        tokenIssuer: GATEWAY,
        subject: 'alice',
        client: 'app',
        tenant: 'acme',
        session: full.session,
        roles: full.roles,
        scopes: full.scopes,
        tokenId,
        tokenIdHash,
      })
    },
  )

  it('omits members that the grant does not have', async () => {
    const { token } = await issuing().issuer.issue(bare)
    const claims = decodeJwt(token)
    expect(Object.keys(claims).sort()).toEqual(
      ['aud', 'client_id', 'exp', 'iat', 'iss', 'jti', 'sub'].sort(),
    )
    expect(claims.aud).toBe(GATEWAY)
  })

  it('has a random UUID of version 4 as id [S41]', async () => {
    const { issuer } = issuing()
    const ids = await Promise.all([1, 2, 3].map(async () => (await issuer.issue(bare)).tokenId))
    for (const id of ids) expect(id).toMatch(UUID4)
    expect(new Set(ids).size).toBe(3)
  })

  it('is signed by the first key with an nbf in the past and an exp in the future [S46]', async () => {
    const [first, second] = keys
    if (first === undefined || second === undefined) throw new Error('unreachable')
    const next = { ...first, nbf: NOW_SECONDS + 600 }
    const old = { ...second, exp: NOW_SECONDS + 700 }
    const { clock, issuer } = issuing({ keys: [next, old] })
    const kid = async () => decodeProtectedHeader((await issuer.issue(bare)).token).kid
    expect(await kid()).toBe(old.kid)
    clock.nowMs = (NOW_SECONDS + 600) * 1000
    expect(await kid()).toBe(next.kid)
    const ended = issuing({ keys: [old] })
    ended.clock.nowMs = (NOW_SECONDS + 700) * 1000
    await expect(ended.issuer.issue(bare)).rejects.toThrow('signing_keys: no_key')
  })

  it('is an outage for an algorithm without a key', async () => {
    const { issuer } = issuing({ keys: keys.filter(({ alg }) => alg === 'ES256') })
    const failure = await issuer.issue(bare, { algorithm: 'RS256' }).catch((error) => error)
    expect(failure).toBeInstanceOf(Unavailable)
    expect(failure.fault).toBe('no_key')
  })
})

describe('the lifetime of a token', () => {
  it('is the configured or the requested one', async () => {
    const { issuer } = issuing({ defaultTtlSeconds: 600 })
    const life = async (options?: object) => {
      const { issuedAtSeconds, expiresAtSeconds } = await issuer.issue(bare, options)
      return expiresAtSeconds - issuedAtSeconds
    }
    expect(await life()).toBe(600)
    expect(await life({ ttlSeconds: 300 })).toBe(300)
    expect(await life({ ttlSeconds: 3_600 })).toBe(3_600)
  })

  it.each(['jwt', 'opaque'] as const)(
    'never exceeds the end of its session (%s) [S39]',
    async (format) => {
      const { issuer, references } = issuing()
      const notAfterSeconds = NOW_SECONDS + 60.9
      const issued = await issuer.issue(bare, { format, notAfterSeconds })
      expect(issued.expiresAtSeconds).toBe(NOW_SECONDS + 60)
      const expiry =
        format === 'jwt'
          ? decodeJwt(issued.token).exp
          : (await references.find(await credentialHash(issued.token)))?.expiresAtSeconds
      expect(expiry).toBe(NOW_SECONDS + 60)
    },
  )

  it.each([
    ['has ended', { notAfterSeconds: NOW_SECONDS }],
    [
      'has ended, for a retried refresh',
      { notAfterSeconds: NOW_SECONDS - 1, issuedAtSeconds: NOW_SECONDS - 10 },
    ],
    ['ends within this second', { notAfterSeconds: NOW_SECONDS + 0.5 }],
  ])('is refused for a session that %s', async (_, options) => {
    const { issuer, references } = issuing()
    for (const format of ['jwt', 'opaque'] as const) {
      const failure = await issuer.issue(bare, { format, ...options }).catch((error) => error)
      expect(failure).toBeInstanceOf(Denied)
      expect(failure.denial).toMatchObject({ code: 'oauth_refused', error: 'invalid_grant' })
    }
    expect(references.records.size).toBe(0)
  })

  it.each([299, 3_601, 0, -1, Number.NaN, Number.POSITIVE_INFINITY])(
    'of %d seconds is a RangeError',
    async (ttlSeconds) => {
      await expect(issuing().issuer.issue(bare, { ttlSeconds })).rejects.toThrow(RangeError)
      expect(() => issuing({ defaultTtlSeconds: ttlSeconds })).toThrow(RangeError)
    },
  )
})

describe('an opaque token', () => {
  it('is a UUIDv4, its record is stored under its hash, and no stored value contains the token [S40]', async () => {
    const { issuer, references } = issuing()
    const { token, tokenId, tokenIdHash } = await issuer.issue(full, { format: 'opaque' })
    expect(token).toMatch(UUID4)
    expect(tokenId).toMatch(UUID4)
    expect(tokenId).not.toBe(token)
    expect([...references.records.keys()]).toEqual([await credentialHash(token)])
    expect(JSON.stringify([...references.records, tokenIdHash])).not.toContain(token)
    expect(await references.find(await credentialHash(token))).toEqual({
      kind: 'opaque',
      tokenId,
      tokenIssuer: GATEWAY,
      issuer: 'https://idp.test/',
      subject: 'alice',
      client: 'app',
      tenant: 'acme',
      session: full.session,
      roles: full.roles,
      scopes: full.scopes,
      audiences: full.audiences,
      issuedAtSeconds: NOW_SECONDS,
      expiresAtSeconds: NOW_SECONDS + 900,
    })
  })

  it('names the gateway as issuer of the subject if the grant has none', async () => {
    const { issuer, references } = issuing()
    const { token } = await issuer.issue(bare, { format: 'opaque' })
    expect(await references.find(await credentialHash(token))).toMatchObject({ issuer: GATEWAY })
  })

  it('is not returned if it could not be stored', async () => {
    const references = {
      ...rememberingStore(),
      put: async () => {
        throw new Unavailable('redis', 'timeout')
      },
    }
    const { issuer } = issuing({ references })
    await expect(issuer.issue(bare, { format: 'opaque' })).rejects.toThrow(Unavailable)
  })

  it('needs no signing key', async () => {
    const options = { keys: [], issuer: GATEWAY, defaultTtlSeconds: 900 }
    const issuer = createTokenIssuer({ ...options, references: rememberingStore() })
    expect((await issuer.issue(bare, { format: 'opaque' })).token).toMatch(UUID4)
    await expect(issuer.issue(bare)).rejects.toThrow(Unavailable)
  })

  it('is unique in 10,000 together with its id, with 122 random bits of the CSPRNG each [S41]', () => {
    const source = vi.spyOn(crypto, 'getRandomValues')
    const uuids: string[] = []
    for (let count = 0; count < 10_000; count++) {
      const { tokenId, opaqueToken } = seededIds(randomSeed())
      uuids.push(tokenId, opaqueToken)
    }
    expect(new Set(uuids).size).toBe(20_000)
    expect(uuids.filter((uuid) => !UUID4.test(uuid))).toEqual([])
    expect(source.mock.calls.map(([bytes]) => bytes?.byteLength)).toEqual(Array(10_000).fill(32))
    expect(constantBits(uuids.map((uuid) => uuid.replaceAll('-', '')))).toBe(128 - 122)
  })
})

describe('a retried issue', () => {
  it('with the same seed gets the same id and the same opaque token, at any time [S37]', async () => {
    const { clock, issuer, references } = issuing()
    const options = { seed: randomSeed(), issuedAtSeconds: NOW_SECONDS - 3 }
    const first = await issuer.issue(bare, { ...options, format: 'opaque' })
    clock.nowMs += 2_000
    expect(await issuer.issue(bare, { ...options, format: 'opaque' })).toEqual(first)
    expect(references.records.size).toBe(1)
    const jwt = await issuer.issue(bare, options)
    expect(jwt).toMatchObject({ ...first, token: jwt.token })
    expect(decodeJwt(jwt.token)).toMatchObject({ jti: first.tokenId, iat: NOW_SECONDS - 3 })
  })

  it('with a seed of another length is a RangeError', async () => {
    const seed = new Uint8Array(31)
    await expect(issuing().issuer.issue(bare, { seed })).rejects.toThrow(RangeError)
  })
})

/** Returns the number of bits that are equal in all of these hexadecimal texts. */
function constantBits(texts: readonly string[]): number {
  const values = texts.map((text) => BigInt(`0x${text}`))
  const set = values.reduce((all, value) => all & value)
  const clear = values.reduce((all, value) => all & ~value, (1n << 128n) - 1n)
  return (set | clear).toString(2).replaceAll('0', '').length
}
