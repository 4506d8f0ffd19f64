/**
 * What counts towards a ban of an address, and what a ban refuses, on both runtimes: an authentic credential
 * that is refused never bans its address. docs/abuse.md has the same table.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createBanList } from '../../../src/access/abuse/redis/bans.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { newApiKey } from '../../../src/access/tokens/api-key.ts'
import { createReferenceStore } from '../../../src/access/tokens/redis/references.ts'
import { credentialHash } from '../../../src/access/tokens/reference.ts'
import { keyPart } from '../../../src/redis/key-part.ts'
import { serve } from '../../../src/runtimes/node/index.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { AUDIENCE, createKey, ISSUER, mint, type TestKey } from '../../harness/issuer.ts'
import { freePort } from '../../harness/process.ts'
import { redisVars, startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { overResp } from '../../harness/redis-protocols.ts'
import { startWorkerd } from '../../origin/workerd.ts'
import { FAILURES, policyFor, VIOLATIONS } from './causes-policy.ts'

const PUBLIC_URL = 'https://gateway.test'
const PATIENCE = { timeout: 100_000, interval: 20 }
const seconds = () => Math.floor(Date.now() / 1000)
const GOOD = { email_verified: true, client_id: 'shop' }

let redis: TestRedis
let origin: TestServer
let key: TestKey
let stranger: TestKey
let reached = 0
let addresses = 0

beforeAll(async () => {
  redis = await startTestRedis()
  origin = await startHttpServer((_, response) => {
    reached += 1
    response.end('[]')
  })
  key = await createKey('k1')
  stranger = await createKey('k1')
})
afterAll(async () => {
  await origin?.close()
  await redis?.close()
})

function newAddress(): string {
  addresses += 1
  return `198.51.100.${addresses}`
}
const good = (sub: string = crypto.randomUUID(), claims: object = {}) =>
  mint(key, { claims: { ...GOOD, sub, ...claims } })

async function apiKey(audience: string): Promise<string> {
  const text = newApiKey()
  await createReferenceStore(overResp(redis)).put(await credentialHash(text), {
    kind: 'api_key',
    tokenId: crypto.randomUUID(),
    tokenIssuer: PUBLIC_URL,
    issuer: PUBLIC_URL,
    subject: 'robot',
    roles: ['reader'],
    scopes: [],
    audiences: [audience],
    issuedAtSeconds: seconds(),
    expiresAtSeconds: null,
  })
  return text
}

async function revoked(): Promise<string> {
  const sub = crypto.randomUUID()
  const token = await good(sub)
  await createRevocations(overResp(redis), Date.now).revokeBefore({
    kind: 'subject',
    issuer: ISSUER,
    value: sub,
    atSeconds: seconds() + 5,
    ttlSeconds: 600,
  })
  return token
}

interface Cause {
  readonly cause: string
  readonly credential: () => Promise<string>
  readonly path?: string
  readonly status: 401 | 403
}

const past = seconds() - 600
// The server on Node writes its audit events to the log.
vi.spyOn(console, 'log').mockImplementation(() => {})

/** The credential is authentic: it never counts towards a ban of its address. */
const AUTHENTIC: readonly Cause[] = [
  {
    cause: 'another audience',
    credential: () => good(undefined, { aud: 'https://x.test' }),
    status: 401,
  },
  {
    cause: 'another `typ`',
    credential: () => mint(key, { claims: GOOD, header: { typ: 'JWT' } }),
    status: 401,
  },
  {
    cause: 'not valid yet',
    credential: () => good(undefined, { nbf: seconds() + 600 }),
    status: 401,
  },
  {
    cause: 'expired',
    credential: () => good(undefined, { iat: past - 60, exp: past }),
    status: 401,
  },
  {
    cause: 'a required claim is missing',
    credential: () => good(undefined, { email_verified: false }),
    status: 401,
  },
  {
    cause: 'another client',
    credential: () => good(undefined, { client_id: 'other' }),
    status: 401,
  },
  {
    cause: 'no role with the permission',
    credential: () => good(undefined, { roles: [] }),
    status: 403,
  },
  { cause: 'revoked', credential: revoked, status: 401 },
  {
    cause: 'an API key for another gateway',
    credential: () => apiKey('https://x.test'),
    status: 401,
  },
  {
    cause: 'a bound token without its proof',
    credential: () => good(undefined, { cnf: { jkt: 'x'.repeat(43) } }),
    status: 401,
  },
  {
    cause: 'a token without a proof where the route demands one',
    credential: () => good(),
    path: '/bound',
    status: 401,
  },
]
/** The credential may be a guess: it counts towards a ban of its address. */
const GUESSES: readonly Cause[] = [
  { cause: 'a wrong signature', credential: () => mint(stranger, { claims: GOOD }), status: 401 },
  {
    cause: 'a wrong signature and another audience',
    credential: () => mint(stranger, { claims: { ...GOOD, aud: 'https://x.test' } }),
    status: 401,
  },
  {
    cause: 'a wrong signature and another `typ`',
    credential: () => mint(stranger, { claims: GOOD, header: { typ: 'JWT' } }),
    status: 401,
  },
  {
    cause: 'an issuer that is not trusted',
    credential: () => good(undefined, { iss: 'https://y.test' }),
    status: 401,
  },
  {
    cause: 'an unknown key',
    credential: () => mint(key, { claims: GOOD, header: { kid: 'k9' } }),
    status: 401,
  },
  { cause: 'an unknown API key', credential: async () => newApiKey(), status: 401 },
  { cause: 'no token at all', credential: async () => 'x', status: 401 },
]

const variables = () => ({
  ...redisVars(redis),
  PUBLIC_URL,
  ORIGIN_URL: origin.url,
  ISSUERS: JSON.stringify([
    {
      issuer: ISSUER,
      audience: AUDIENCE,
      jwks: { keys: [key.publicJwk] },
      require: { email_verified: true },
      clients: ['shop'],
    },
  ]),
})

/** Starts a gateway; returns its URL. Clients name their address. */
const RUNTIMES = {
  async workerd(refuses: 'everything' | undefined) {
    const vars = { ...variables(), REFUSES: refuses ?? '' }
    return startWorkerd({ entry: 'test/access/admission/workers/causes.ts', vars })
  },
  async Node(refuses: 'everything' | undefined) {
    const port = await freePort()
    const env = { ...variables(), TRUSTED_PROXIES: '127.0.0.1/32', AUDIT_DATABASE: undefined }
    const server = await serve({ policy: policyFor(refuses), env, port, graceMs: 1_000 })
    return { port, stop: () => server.close() }
  },
}

describe.each(['workerd', 'Node'] as const)('refused credentials on %s', (runtime) => {
  let usual: { readonly port: number; stop(): Promise<void> }
  let strict: { readonly port: number; stop(): Promise<void> }
  beforeAll(async () => {
    usual = await RUNTIMES[runtime](undefined)
    strict = await RUNTIMES[runtime]('everything')
  })
  afterAll(async () => {
    await Promise.all([usual?.stop(), strict?.stop()])
  })

  async function statusOf(address: string, path: string, credential?: string, at = usual) {
    const response = await fetch(`http://127.0.0.1:${at.port}${path}`, {
      headers: {
        'cf-connecting-ip': address,
        'x-forwarded-for': address,
        ...(credential !== undefined && { authorization: `Bearer ${credential}` }),
      },
    })
    await response.arrayBuffer()
    return response.status
  }

  const forged = () => mint(stranger, { claims: GOOD })
  const violationsOf = async (address: string) =>
    (await redis.direct.get(`pc:violations:address:${await keyPart(address)}`))?.split(' ')[0]

  /** Guesses credentials until a valid one is refused. */
  async function earnBan(address: string, at = usual) {
    for (let sent = 0; sent < VIOLATIONS; sent += 1)
      await statusOf(address, '/orders', await forged(), at)
    const token = await good()
    await vi.waitFor(async () => {
      expect(await statusOf(address, '/orders', token, at)).toBe(403)
    }, PATIENCE)
  }

  test.each(AUTHENTIC)(
    '$cause: never bans the address, and others there are served',
    async ({ credential, path = '/orders', status }) => {
      const address = newAddress()
      const before = reached
      for (let sent = 0; sent < VIOLATIONS + 1; sent += 1)
        expect(await statusOf(address, path, await credential())).toBe(status)
      expect(reached).toBe(before)
      // The first guess is the first violation.
      expect(await statusOf(address, '/orders', await forged())).toBe(401)
      await vi.waitFor(async () => expect(await violationsOf(address)).toBeDefined(), PATIENCE)
      expect(await violationsOf(address)).toBe('1')
      expect(await statusOf(address, '/orders', await good())).toBe(200)
      expect(await statusOf(address, '/open')).toBe(200)
    },
  )

  test.each(GUESSES)(
    '$cause: bans the credentials of the address, and no anonymous request [S44]',
    async ({ credential, status }) => {
      const address = newAddress()
      const token = await good()
      expect(await statusOf(address, '/orders', token)).toBe(200)
      const before = reached
      for (let sent = 0; sent < VIOLATIONS; sent += 1)
        expect(await statusOf(address, '/orders', await credential())).toBe(status)
      await vi.waitFor(async () => {
        expect(await statusOf(address, '/orders', token)).toBe(403)
      }, PATIENCE)
      const banned = reached
      expect(await statusOf(address, '/orders', await good())).toBe(403)
      expect(await statusOf(address, '/orders', await apiKey(PUBLIC_URL))).toBe(403)
      // A credential is refused on an open route, too.
      expect(await statusOf(address, '/open', token)).toBe(403)
      expect(reached).toBe(banned)
      expect(banned).toBeGreaterThanOrEqual(before)
      expect(await statusOf(address, '/open')).toBe(200)
      expect(reached).toBe(banned + 1)
      expect(await statusOf(newAddress(), '/orders', token)).toBe(200)
    },
  )

  test('a policy may let an automatic ban refuse everything', async () => {
    const address = newAddress()
    await earnBan(address, strict)
    const before = reached
    expect(await statusOf(address, '/open', undefined, strict)).toBe(403)
    expect(await statusOf(address, '/open', undefined, usual)).toBe(403)
    expect(reached).toBe(before)
    expect(await statusOf(newAddress(), '/open', undefined, strict)).toBe(200)
  })

  test('attacks of anonymous callers ban no caller with a credential', async () => {
    const address = newAddress()
    const attack = `/search?q=${encodeURIComponent("1' OR '1'='1' --")}`
    const before = reached
    for (let sent = 0; sent < VIOLATIONS; sent += 1)
      expect(await statusOf(address, attack)).toBe(403)
    expect(reached).toBe(before)
    expect(await statusOf(address, '/orders', await forged())).toBe(401)
    await vi.waitFor(async () => expect(await violationsOf(address)).toBeDefined(), PATIENCE)
    expect(await violationsOf(address)).toBe('1')
    expect(await statusOf(address, '/orders', await good())).toBe(200)
    expect(await statusOf(address, '/open')).toBe(200)

    const other = newAddress()
    for (let sent = 0; sent < VIOLATIONS; sent += 1)
      await statusOf(other, attack, undefined, strict)
    await vi.waitFor(async () => {
      expect(await statusOf(other, '/open', undefined, strict)).toBe(403)
    }, PATIENCE)
  })

  test("an operator's ban of an address refuses everything, beside an automatic one as well", async () => {
    const bans = createBanList(overResp(redis), Date.now)
    const address = newAddress()
    await earnBan(address)
    const { id } = await bans.create({
      kind: 'address',
      value: address,
      issuers: [],
      seconds: 600,
      createdBy: 'olga',
    })
    const before = reached
    expect(await statusOf(address, '/open')).toBe(403)
    expect(await statusOf(address, '/orders', await good())).toBe(403)
    expect(reached).toBe(before)
    await bans.remove(id)
    expect(await statusOf(address, '/open')).toBe(200)
    expect(await statusOf(address, '/orders', await good())).toBe(403)
  })

  test('authentic credentials throttle their subject at their address, and no other caller', async () => {
    const [address, elsewhere] = [newAddress(), newAddress()]
    const wrong = (sub: string) => good(sub, { aud: 'https://x.test' })
    const [sub, other] = [crypto.randomUUID(), crypto.randomUUID()]
    for (let sent = 0; sent < FAILURES; sent += 1)
      expect(await statusOf(address, '/orders', await wrong(sub))).toBe(401)
    const before = reached
    expect(await statusOf(address, '/orders', await wrong(sub))).toBe(429)
    expect(await statusOf(address, '/orders', await good(sub))).toBe(429)
    expect(reached).toBe(before)
    expect(await statusOf(address, '/orders', await wrong(other))).toBe(401)
    expect(await statusOf(address, '/orders', await good(other))).toBe(200)
    expect(await statusOf(address, '/orders', await apiKey(PUBLIC_URL))).toBe(200)
    expect(await statusOf(elsewhere, '/orders', await wrong(sub))).toBe(401)
    expect(await statusOf(elsewhere, '/orders', await good(sub))).toBe(200)
    // Forged tokens of the subject throttle the address that sends them.
    expect(await violationsOf(address)).toBeUndefined()
  })
})
