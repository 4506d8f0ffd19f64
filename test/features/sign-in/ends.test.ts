/** How a session ends: an operator's revocation, its lives, and newer sessions of its user. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import type { RevokedBeforeKind } from '../../../src/access/revocation/revocation.ts'
import { createReferenceStore } from '../../../src/access/tokens/redis/references.ts'
import { credentialHash, principalOfRecord } from '../../../src/access/tokens/reference.ts'
import { DEFAULT_TERMS } from '../../../src/features/sign-in/index.ts'
import type { Login } from '../../../src/features/sign-in/provider.ts'
import { createSessionStore } from '../../../src/features/sign-in/redis/session-store.ts'
import { createSeal } from '../../../src/features/sign-in/seal.ts'
import { SESSION_COOKIE } from '../../../src/features/sign-in/session.ts'
import { createSessions } from '../../../src/features/sign-in/sessions.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { RUNTIMES, type SignInGateway, startGateway } from './gateway.ts'
import { createUserAgent, type UserAgent } from './user-agent.ts'

const DEFINITION = { idleSeconds: 60, absoluteSeconds: 120, maxSessions: 2 }
const nowSeconds = () => Math.floor(Date.now() / 1000)

describe.each(RUNTIMES)('a session on %s ends [S76]', (runtime) => {
  let gateway: SignInGateway
  beforeAll(async () => {
    gateway = await startGateway({ runtime, definition: DEFINITION })
  })
  afterAll(() => gateway?.close())
  beforeEach(async () => {
    await gateway.redis.direct.flushall()
    gateway.reached.length = 0
    Object.assign(gateway.provider.user, { subject: 'alice', roles: ['reader'], tenant: 'north' })
  })

  const rest = () => createRedisRest({ ...gateway.redis, timeoutMs: 20_000 })
  const revocations = () => createRevocations(rest(), Date.now)
  const send = (reference: string | undefined) =>
    createUserAgent().send(`${gateway.url}/orders`, {
      headers: { cookie: `${SESSION_COOKIE}=${reference}` },
    })
  const sessionOf = (browser: UserAgent) => browser.jarOf(gateway.url).get(SESSION_COOKIE)
  async function signedIn() {
    const browser = createUserAgent()
    expect((await browser.visit(`${gateway.url}/orders`)).status).toBe(200)
    return sessionOf(browser)
  }
  async function principalOf(reference = '') {
    const record = await createReferenceStore(rest()).find(await credentialHash(reference))
    if (record === undefined) throw new Error('no session')
    return principalOfRecord(record)
  }
  /** Fails unless the next request is refused, and does not reach the origin. */
  async function expectEnded(reference: string | undefined) {
    const before = gateway.reached.length
    const response = await send(reference)
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([
      401,
      'sign_in_required',
    ])
    expect(gateway.reached).toHaveLength(before)
  }

  test.each<[RevokedBeforeKind, (of: Awaited<ReturnType<typeof principalOf>>) => unknown]>([
    ['session', ({ session }) => session],
    ['subject', ({ subject }) => subject],
    ['client', () => gateway.provider.client.id],
    ['tenant', ({ tenant }) => tenant],
  ])('when an operator revokes its %s, and another session goes on', async (kind, nameIn) => {
    const reference = await signedIn()
    Object.assign(gateway.provider.user, { subject: 'bob', tenant: 'south' })
    const other = await signedIn()
    const value = nameIn(await principalOf(reference))
    expect(value).toEqual(expect.any(String))
    expect((await send(reference)).status).toBe(200)
    await revocations().revokeBefore({
      kind,
      issuer: gateway.provider.issuer,
      value: String(value),
      atSeconds: nowSeconds(),
      ttlSeconds: 60,
    })
    await expectEnded(reference)
    if (kind === 'client') await expectEnded(other)
    else expect((await send(other)).status).toBe(200)
  })

  test('when an operator revokes its id, and another session of the user goes on', async () => {
    const reference = await signedIn()
    const other = await signedIn()
    const { tokenIdHash = '' } = await principalOf(reference)
    expect((await send(reference)).status).toBe(200)
    await revocations().revokeToken({ tokenIdHash, untilSeconds: nowSeconds() + 60 })
    await expectEnded(reference)
    expect((await send(other)).status).toBe(200)
  })

  test('when its user has more sessions than permitted, the oldest first', async () => {
    const references = [await signedIn(), await signedIn(), await signedIn()]
    await expectEnded(references[0])
    for (const reference of references.slice(1)) expect((await send(reference)).status).toBe(200)
  })

  /** The sessions of a gateway whose clock shows the past. */
  const sessionsAt = (secondsAgo: number) => {
    const now = () => Date.now() - secondsAgo * 1000
    return createSessions({
      store: createSessionStore(rest(), now),
      revocations: createRevocations(rest(), now),
      terms: { ...DEFAULT_TERMS, ...DEFINITION },
      audience: gateway.url,
      now,
    })
  }
  const openedAgo = (secondsAgo: number) =>
    sessionsAt(secondsAgo).open(login(gateway.provider.issuer), PROVIDER, undefined)

  test('after its idle time, and a request in this time begins it again', async () => {
    const used = await openedAgo(50)
    const response = await send(used)
    expect(response.status).toBe(200)
    const [cookie = ''] = response.headers.getSetCookie().filter((one) => one.startsWith('__Host'))
    const renewed = cookie.slice(cookie.indexOf('=') + 1, cookie.indexOf(';'))
    expect(renewed).not.toBe(used)
    const { expiresAtSeconds } = await principalOf(renewed)
    expect(Math.abs(expiresAtSeconds - nowSeconds() - 60)).toBeLessThan(30)
    await expectEnded(await openedAgo(70))
  })

  test('at the end of its absolute life, although it was used', async () => {
    async function renewedAgo(opened: number, renewed: number) {
      const reference = await openedAgo(opened)
      const next = await sessionsAt(renewed).renew(reference, await principalOf(reference))
      if (next === undefined) throw new Error('not renewed')
      return next
    }
    const young = await renewedAgo(90, 50)
    const response = await send(young)
    expect(response.status).toBe(200)
    const { signIn, expiresAtSeconds } = await principalOf(young)
    expect(expiresAtSeconds).toBeLessThanOrEqual(signIn?.endsAtSeconds ?? 0)
    await expectEnded(await renewedAgo(130, 75))
  })
})

const PROVIDER = { seal: createSeal('a secret of the client') }

const login = (issuer: string): Login => ({
  principal: {
    issuer,
    tokenIssuer: issuer,
    subject: 'alice',
    client: 'gateway',
    tenant: undefined,
    session: undefined,
    roles: ['reader'],
    scopes: [],
    tokenId: undefined,
    tokenIdHash: undefined,
    confirmation: undefined,
    issuedAtSeconds: 0,
    expiresAtSeconds: 0,
  },
  tokens: { idToken: 'x.y.z' },
  refreshAtSeconds: undefined,
  providerSubject: 'alice',
  providerSession: undefined,
  facts: { authTimeSeconds: nowSeconds() },
})
