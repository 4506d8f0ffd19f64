/** What a gateway takes from its runtime: the client's address, and calls that cost CPU. */
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { composeServices, definePolicy, type GatewayEnv, WORKERS } from '../../src/index.ts'
import { sendTo, startGateway, type TestGateway } from '../harness/gateway.ts'

const policy = definePolicy({
  roles: {},
  limits: { open: { limit: 1, windowSeconds: 60, by: 'address', onUnavailable: 'deny' } },
  routes: [{ method: 'GET', path: '/open', anonymous: true, limits: ['open'] }],
})

let gateway: TestGateway

beforeAll(async () => {
  gateway = await startGateway({ policy })
})

afterAll(() => gateway?.close())

test('its source must be stated: without a runtime, the gateway does not start', () => {
  const env = gateway.environment as unknown as GatewayEnv
  expect(() => composeServices(env, policy)).toThrow(
    'outside of Cloudflare Workers, pass a runtime as the third argument',
  )
  expect(() => composeServices(env, policy, WORKERS)).not.toThrow()
})

test('a client cannot choose it with CF-Connecting-IP', async () => {
  const addressOf = () => '192.0.2.7'
  const app = gateway.isolate(policy, {}, { ports: { addressOf } })
  const answers = []
  for (const forged of ['198.51.100.1', '198.51.100.2'])
    answers.push(await app.request('/open', { headers: { 'CF-Connecting-IP': forged } }))
  expect(answers.map(({ status }) => status)).toEqual([200, 429])
  expect(gateway.requests.map(({ headers }) => headers['x-forwarded-for'])).toEqual(['192.0.2.7'])
  expect(gateway.events.map(({ address }) => address)).toEqual(['192.0.2.7', '192.0.2.7'])
})

type Call = (...args: unknown[]) => unknown

/** Replaces a member of an object until the end of the test. */
function replace(of: object, name: string, value: unknown): void {
  const original = Reflect.get(of, name)
  Reflect.set(of, name, value)
  onTestFinished(() => void Reflect.set(of, name, original))
}

/** Counts calls of members that the platform of Workers implements outside of JavaScript. The test itself runs on Node. */
function countPlatformCalls() {
  const counts = new Map<string, number>()
  const count = (name: string) => counts.set(name, (counts.get(name) ?? 0) + 1)
  const methods: readonly (readonly [object, ...string[]])[] = [
    [Headers.prototype, 'get', 'set', 'has', 'append', 'delete', 'forEach', 'keys', 'entries'],
    [globalThis, 'fetch', 'setTimeout'],
    [Date, 'now'],
    [JSON, 'stringify'],
  ]
  for (const [of, ...names] of methods)
    for (const name of names) {
      const original = Reflect.get(of, name) as Call
      replace(of, name, function counted(this: unknown, ...args: unknown[]) {
        count(name)
        return Reflect.apply(original, this, args)
      })
    }
  for (const name of ['Response', 'Headers', 'AbortController', 'URL']) {
    const original = Reflect.get(globalThis, name) as new () => object
    const construct = (of: typeof original, args: unknown[]) => {
      count(`new ${name}`)
      return Reflect.construct(of, args) as object
    }
    replace(globalThis, name, new Proxy(original, { construct }))
  }
  return { counts, count }
}

/** Answers each call as the one of its kind before it. Returns a function after which no real one is made. */
function replayCalls(): () => void {
  const { fetch, Response } = globalThis
  const kept = new Map<string, string>()
  let isReplayed = false
  replace(globalThis, 'fetch', async (url: string, init: RequestInit) => {
    const kind = typeof init.body === 'string' ? init.body.slice(0, KIND_CHARS) : 'origin'
    const text = (isReplayed && kept.get(kind)) || (await (await fetch(url, init)).text())
    if (!text.includes('NOSCRIPT')) kept.set(kind, text)
    const headers = { 'Content-Type': 'application/json', 'Content-Length': `${text.length}` }
    return new Response(text, { headers })
  })
  return () => {
    isReplayed = true
  }
}

/** Of a call to Redis: the digest of its script. */
const KIND_CHARS = 54

/** Returns the counts that most requests have: some renew a lease, or send what others have collected. */
function mostFrequent(all: readonly Readonly<Record<string, number>>[]): unknown {
  const texts = all.map((made) => JSON.stringify(Object.entries(made).sort()))
  const numberOf = (text: string) => texts.filter((each) => each === text).length
  const [first = '[]'] = texts.toSorted((a, b) => numberOf(b) - numberOf(a))
  return numberOf(first) > all.length / 2 ? Object.fromEntries(JSON.parse(first)) : all
}

/** A view of revocations has a timer of its own. */
const OF_ANY = { append: 1, forEach: 2, has: 1, 'new Response': 1, set: 5, setTimeout: 2 }
const STRICT = { fetch: 2, get: 3, 'new AbortController': 2, now: 19, stringify: 1, waitUntil: 1 }
const LEASED = { fetch: 1, get: 1, 'new AbortController': 1, now: 17, waitUntil: 1 }

test.each([
  ['strict', {}, 0, { ...OF_ANY, ...STRICT }],
  ['leased', { lease: { max: 100, ttlMs: 1_000 } }, 1_000, { ...OF_ANY, ...LEASED }],
])(
  'a %s request makes no more calls to the platform',
  async (_, lease, maxStalenessMs, expected) => {
    vi.useFakeTimers({ toFake: ['Date'] })
    onTestFinished(() => void vi.useRealTimers())
    const standard = {
      limit: 900,
      windowSeconds: 60,
      by: 'subject',
      onUnavailable: 'deny',
    } as const
    const app = gateway.isolate(
      definePolicy({
        roles: { reader: ['orders:read'] },
        limits: { standard: { ...standard, ...lease } },
        revocation: { maxStalenessMs },
        routes: [
          { method: 'GET', path: '/orders', permission: 'orders:read', limits: ['standard'] },
        ],
      }),
    )
    const headers = { authorization: `Bearer ${await gateway.token()}` }
    const newRequest = () => new Request('https://gateway.test/orders?page=2', { headers })
    const replay = replayCalls()
    const { counts, count } = countPlatformCalls()
    // They load scripts and fill caches.
    for (let sent = 0; sent < 5; sent++) await sendTo(app, newRequest())
    replay()
    const all: Readonly<Record<string, number>>[] = []
    for (let sent = 0; sent < 10; sent++) {
      const request = newRequest()
      const behind: Promise<unknown>[] = []
      const waitUntil = (work: Promise<unknown>) => {
        count('waitUntil')
        behind.push(work)
      }
      counts.clear()
      const response = await app.fetch(
        request,
        {},
        { waitUntil, passThroughOnException() {}, props: {} },
      )
      const made = Object.fromEntries(counts)
      expect([response.status, await response.text()]).toEqual([200, '[]'])
      await Promise.all(behind)
      all.push(made)
    }
    expect(mostFrequent(all)).toEqual(expected)
  },
)
