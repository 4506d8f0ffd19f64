/** The user of a browser, for pages of the gateway: found by the session, or sent to the sign-in. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { addressBanKey } from '../../../src/access/abuse/ban.ts'
import { createAdmission } from '../../../src/access/admission/admission.ts'
import { createRedisAdmissionStore } from '../../../src/access/admission/redis/store.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { tokenIdHash } from '../../../src/access/token-id.ts'
import { createReferenceStore } from '../../../src/access/tokens/redis/references.ts'
import { credentialHash, type ReferenceRecord } from '../../../src/access/tokens/reference.ts'
import { createReferences } from '../../../src/access/tokens/references.ts'
import { Denied, Unavailable } from '../../../src/errors.ts'
import { createHosts } from '../../../src/features/sign-in/hosts.ts'
import { newSessionReference, SESSION_COOKIE } from '../../../src/features/sign-in/session.ts'
import { createSessionReader } from '../../../src/features/sign-in/session-reader.ts'
import {
  createSignedInUsers,
  type SignedInUserQuery,
} from '../../../src/features/sign-in/signed-in-user.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'

const GATEWAY = 'https://gateway.example'
const IDP = 'https://login.example.com'
const ADDRESS = '192.0.2.1'
const nowSeconds = Math.floor(Date.now() / 1000)

let redis: TestRedis
beforeAll(async () => {
  redis = await startTestRedis()
})
afterAll(() => redis.close())
beforeEach(() => redis.direct.flushall())

const rest = (url = redis.url) => createRedisRest({ url, token: redis.token, timeoutMs: 20_000 })

/** Creates an isolate: its own caches, the same Redis. */
function isolate(url?: string) {
  const references = createReferences({ audience: GATEWAY })
  const store = createRedisAdmissionStore(rest(url))
  const admission = createAdmission({ store, references, now: Date.now })
  const readUser = createSessionReader({
    admission,
    references,
    hosts: createHosts([], GATEWAY),
  })
  return createSignedInUsers({ readUser, now: Date.now })
}

/** Stores a session, and returns its cookie. */
async function session(
  signIn: Partial<NonNullable<ReferenceRecord['signIn']>> = {},
  record: Partial<ReferenceRecord> = {},
): Promise<string> {
  const text = newSessionReference()
  await createReferenceStore(rest()).put(await credentialHash(text), {
    kind: 'session',
    tokenId: 'session-1',
    tokenIssuer: IDP,
    issuer: IDP,
    subject: 'alice',
    roles: ['reader'],
    scopes: [],
    audiences: [GATEWAY],
    issuedAtSeconds: nowSeconds,
    expiresAtSeconds: nowSeconds + 600,
    signIn: {
      providerSubject: 'alice',
      authTimeSeconds: nowSeconds - 100,
      renewAtSeconds: nowSeconds + 60,
      endsAtSeconds: nowSeconds + 3_600,
      ...signIn,
    },
    ...record,
  })
  return `${SESSION_COOKIE}=${text}`
}

const query = (cookie?: string, demand: Partial<SignedInUserQuery> = {}): SignedInUserQuery => ({
  request: new Request(`${GATEWAY}/oauth/authorize`, { headers: cookie ? { cookie } : {} }),
  address: ADDRESS,
  returnPath: '/oauth/authorize?client_id=x',
  ...demand,
})
const REQUIRED = {
  signInPath: '/oauth/sign-in?return_to=%2Foauth%2Fauthorize%3Fclient_id%3Dx',
}

test('a session names its user, on the first request and from the cache', async () => {
  const cookie = await session({ acr: 'mfa' })
  const users = isolate()
  for (const _ of ['cold', 'warm'])
    expect(await users.find(query(cookie))).toMatchObject({
      issuer: IDP,
      subject: 'alice',
      acr: 'mfa',
      authenticatedAtSeconds: nowSeconds - 100,
      sessionIdHash: await tokenIdHash(IDP, 'session-1'),
    })
})

test('without a valid session, the browser is sent to the sign-in and back', async () => {
  const users = isolate()
  expect(await users.find(query())).toEqual(REQUIRED)
  expect(await users.find(query(`${SESSION_COOKIE}=${newSessionReference()}`))).toEqual(REQUIRED)
  expect(await users.find(query(`${SESSION_COOKIE}=x`))).toEqual(REQUIRED)
  const ended = await session({}, { expiresAtSeconds: nowSeconds - 60 })
  expect(await users.find(query(ended))).toEqual(REQUIRED)
  const elsewhere = await session({}, { audiences: ['https://other.example'] })
  expect(await users.find(query(elsewhere))).toEqual(REQUIRED)
})

test('a revoked session counts as none in the next call, in a warm isolate too', async () => {
  const cookie = await session()
  const users = isolate()
  expect(await users.find(query(cookie))).toHaveProperty('subject')
  await createRevocations(rest(), Date.now).revokeToken({
    tokenIdHash: await tokenIdHash(IDP, 'session-1'),
    untilSeconds: nowSeconds + 600,
  })
  expect(await users.find(query(cookie))).toEqual(REQUIRED)
  expect(await isolate().find(query(cookie))).toEqual(REQUIRED)
})

test('a demand that the login does not meet leads to a new login with this demand', async () => {
  const users = isolate()
  const cookie = await session({ acr: 'pwd' })
  const find = (demand: Partial<SignedInUserQuery>) => users.find(query(cookie, demand))
  expect(await find({ maxAgeSeconds: 200, acr: ['mfa', 'pwd'] })).toHaveProperty('subject')
  const base = REQUIRED.signInPath
  expect(await find({ maxAgeSeconds: 60 })).toEqual({ signInPath: `${base}&max_age=60` })
  expect(await find({ acr: ['mfa'] })).toEqual({ signInPath: `${base}&acr_values=mfa` })
  expect(await find({ prompt: 'login' })).toEqual({ signInPath: `${base}&prompt=login` })
})

test('a return path to another host is replaced', async () => {
  expect(await isolate().find(query(undefined, { returnPath: '//evil.example/' }))).toEqual({
    signInPath: '/oauth/sign-in?return_to=%2F',
  })
})

test('a banned address is refused, and an outage is unavailable: neither is a login', async () => {
  const cookie = await session()
  const key = await addressBanKey(DEFAULT_KEYS, ADDRESS)
  await redis.direct.set(key, String(nowSeconds + 600))
  await expect(isolate().find(query(cookie))).rejects.toMatchObject({ denial: { code: 'banned' } })
  await expect(isolate().find(query(cookie))).rejects.toBeInstanceOf(Denied)
  await expect(isolate('http://127.0.0.1:9').find(query(cookie))).rejects.toBeInstanceOf(
    Unavailable,
  )
})

test('two session cookies are ambiguous', async () => {
  const cookie = await session()
  await expect(isolate().find(query(`${cookie}; ${await session()}`))).rejects.toMatchObject({
    denial: { code: 'ambiguous_credentials' },
  })
})
