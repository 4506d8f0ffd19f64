/** A page for everybody greets a signed-in user. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { signIn } from '../../../src/features/sign-in/index.ts'
import { SESSION_COOKIE } from '../../../src/features/sign-in/session.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { RUNTIMES, type SignInGateway, startGateway } from './gateway.ts'
import { createUserAgent, type UserAgent } from './user-agent.ts'

describe.each(RUNTIMES)('a route with an optional session on %s', (runtime) => {
  let gateway: SignInGateway
  let browser: UserAgent
  beforeAll(async () => {
    gateway = await startGateway({ runtime, definition: { roles: ['reader'] } })
  })
  afterAll(() => gateway?.close())
  beforeEach(() => {
    browser = createUserAgent()
    gateway.reached.length = 0
  })
  const at = (path: string) => gateway.url + path
  /** Returns the subject that the origin receives. */
  async function greeted(init: RequestInit = {}) {
    const before = gateway.reached.length
    const { status, path, headers } = await browser.visit(at('/welcome'), undefined, init)
    expect([status, path, gateway.reached.length - before]).toEqual([200, ['/welcome'], 1])
    expect(headers.get('vary')?.toLowerCase()).toContain('cookie')
    return gateway.reached.at(-1)?.headers['x-auth-subject']
  }

  test('admits a browser without a session, and sends it to no sign-in', async () => {
    expect(await greeted()).toBeUndefined()
  })

  test('names a signed-in user to the origin, and to no shared cache', async () => {
    await browser.visit(at('/orders'))
    expect(await greeted()).toBe('alice')
    const { headers } = await browser.visit(at('/welcome'))
    expect(headers.get('cache-control')).toContain('private')
    expect(gateway.reached.at(-1)?.headers.cookie ?? '').not.toContain(SESSION_COOKIE)
  })

  test('admits a browser whose session has ended, without a name', async () => {
    await browser.visit(at('/orders'))
    const reference = browser.jarOf(gateway.url).get(SESSION_COOKIE) ?? ''
    expect(reference).not.toBe('')
    expect(await greeted()).toBe('alice')
    await browser.send(at('/oauth/sign-out'), {
      method: 'POST',
      headers: { 'sec-fetch-site': 'same-origin' },
    })
    browser.jarOf(gateway.url).set(SESSION_COOKIE, reference)
    expect(await greeted()).toBeUndefined()
    // The session is of no use where one is needed.
    const refused = await browser.send(at('/orders'), { headers: { accept: 'application/json' } })
    expect(refused.status).toBe(401)
  })

  test.each([
    ['an unknown session', `pcb_${'A'.repeat(43)}`],
    ['a text that is no session', 'x'],
  ])('admits a browser with %s, without a name', async (_name, text) => {
    browser.jarOf(gateway.url).set(SESSION_COOKIE, text)
    expect(await greeted()).toBeUndefined()
  })

  test('charges an ended session as one request, and gives its place back', async () => {
    const remaining = async () => {
      const { status, headers } = await browser.visit(at('/welcome'))
      const left = /"perAddress";r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1]
      return [status, Number(left)]
    }
    const [, first = 0] = await remaining()
    browser.jarOf(gateway.url).set(SESSION_COOKIE, `pcb_${'A'.repeat(43)}`)
    // More than the places of the address.
    for (let n = 1; n <= 4; n++) expect(await remaining()).toEqual([200, first - n])
  })

  test('refuses a session together with a token, and a form of another site', async () => {
    await browser.visit(at('/orders'))
    gateway.reached.length = 0
    const both = await browser.send(at('/welcome'), { headers: { authorization: 'Bearer a.b.c' } })
    expect([both.status, await both.json()]).toMatchObject([400, { code: 'ambiguous_credentials' }])
    const form = await browser.send(at('/welcome'), {
      method: 'POST',
      headers: { 'sec-fetch-site': 'cross-site', accept: 'application/json' },
    })
    expect([form.status, await form.json()]).toMatchObject([403, { code: 'cross_origin_request' }])
    expect(gateway.reached).toEqual([])
  })

  test('forgets no revocation during an outage of Redis: 503, and no anonymous caller', async () => {
    await browser.visit(at('/orders'))
    gateway.reached.length = 0
    await gateway.redis.close()
    const { status } = await browser.visit(at('/welcome'))
    expect([status, gateway.reached]).toEqual([503, []])
  })
})

describe('mistakes of an optional session are named', () => {
  const route = { method: 'GET', path: '/welcome' } as const
  const define = (row: object) => () =>
    definePolicy({
      roles: { reader: ['orders:read'] },
      limits: {},
      features: [signIn()],
      routes: [{ ...route, ...row } as never],
    })

  test.each([
    ['without anonymous', { permission: 'orders:read', session: 'optional' }, /requires anonymous/],
    ['with a demand', { anonymous: true, session: { acr: ['mfa'] } }, /cannot be combined/],
    ['with another word', { anonymous: true, session: 'maybe' }, /session/],
  ])('%s', (_name, row, message) => {
    expect(define(row)).toThrow(message)
  })
})
