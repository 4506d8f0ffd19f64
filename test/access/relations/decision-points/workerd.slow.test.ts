/** External policy decision points in real workerd, where a request may not wait for another. */
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { DEFAULT_FAILURES } from '../../../../src/isolate/circuit-breaker.ts'
import { type Running, startWorkerd } from '../../../origin/workerd.ts'
import { KINDS } from './adapters.ts'
import { STORES, startAuthority, type TestAuthority, TOKEN } from './servers.ts'

const ALLOWED = 'doc:1#viewer@user:anne'
const DENIED = 'doc:1#viewer@user:mallory'
const YES = '{"allowed":true,"decision":true}'

let server: TestAuthority
let worker: Running
beforeAll(async () => {
  server = await startAuthority({ none: [ALLOWED] })
  worker = await startWorkerd({
    entry: join(import.meta.dirname, 'workers/decision-point.ts'),
    vars: { AUTHORITY_URL: server.url, AUTHORITY_TOKEN: TOKEN, STORE: STORES.none },
  })
})
afterAll(async () => {
  await worker.stop()
  await server.close()
})
beforeEach(() => {
  server.world = { none: [ALLOWED] }
  server.behavior = undefined
  server.requests.length = 0
})

let serial = 0
/** Returns a function that queries a new decision point with its own breaker; `hasty-` has the default deadline. */
function fresh(kind: string) {
  const url = `http://127.0.0.1:${worker.port}/${kind}/${++serial}`
  return async (tuple: string, init: RequestInit = {}): Promise<string> => {
    const response = await fetch(`${url}?tuple=${encodeURIComponent(tuple)}`, init)
    return `${response.status} ${await response.text()}`
  }
}

describe.each(KINDS)('in workerd: %s', (kind) => {
  test('decides with one call for each request', async () => {
    const decide = fresh(kind)
    expect(await decide(ALLOWED)).toBe('200 allowed')
    expect(await decide(DENIED)).toBe('200 denied')
    server.world = { none: [] }
    expect(await decide(ALLOWED)).toBe('200 denied')
    expect(server.requests).toHaveLength(3)
  })

  test.each([
    ['a redirect', 302, YES, 'refused'],
    ['an error', 500, YES, 'refused'],
    ['a refusal', 403, YES, 'refused'],
    ['text in place of a boolean', 200, '{"allowed":"true","decision":"true"}', 'malformed'],
    ['null', 200, 'null', 'malformed'],
    ['half a response', 200, YES.slice(0, -1), 'malformed'],
    ['an oversized response', 200, `${YES.slice(0, -1)},"x":"${'x'.repeat(70_000)}"}`, 'malformed'],
  ])('%s is never a decision [R06]', async (_, status, body, fault) => {
    server.behavior = (response) =>
      response.writeHead(status, { location: `${server.url}/elsewhere` }).end(body)
    const decide = fresh(kind)
    expect(await decide(ALLOWED)).toBe(`503 authority: ${fault}`)
    expect(await decide(DENIED)).toBe(`503 authority: ${fault}`)
    expect(server.requests.map(({ path }) => path)).not.toContain('/elsewhere')
    expect(server.requests).toHaveLength(2)
  })

  test('silence is an outage, and after five failures the breaker is open [R06]', async () => {
    server.behavior = () => {}
    const decide = fresh(`hasty-${kind}`)
    for (let count = 0; count < DEFAULT_FAILURES; count++)
      expect(await decide(ALLOWED)).toBe('503 authority: timeout')
    expect(await decide(ALLOWED)).toBe('503 authority: timeout, short-circuited')
    server.behavior = undefined
    await expect.poll(() => decide(ALLOWED), { interval: 100 }).toBe('200 allowed')
  })

  test('simultaneous equal queries make few calls, and no answer is older than its query', async () => {
    const held: (() => void)[] = []
    server.behavior = async (response) => {
      const isThere = server.world.none?.includes(ALLOWED) ?? false
      await new Promise<void>((resolve) => held.push(resolve))
      response.end(JSON.stringify({ allowed: isThere, decision: isThere }))
    }
    const decide = fresh(kind)
    const first = decide(ALLOWED)
    await expect.poll(() => held.length, { interval: 5 }).toBe(1)
    server.world = { none: [] }
    const others = Array.from({ length: 30 }, () => decide(ALLOWED))
    // Waits until they have arrived; the first has most of its deadline left.
    await new Promise((resolve) => setTimeout(resolve, 500))
    held[0]?.()
    expect(await first).toBe('200 allowed')
    await expect.poll(() => held.length, { interval: 5 }).toBeGreaterThan(1)
    const release = setInterval(() => {
      for (const go of held) go()
    }, 5)
    expect(new Set(await Promise.all(others))).toEqual(new Set(['200 denied']))
    clearInterval(release)
    expect(server.requests.length).toBeLessThanOrEqual(4)
  })
})

// Both at once: the others wait for the deadline of a call that nothing answers, and may share its outcome.
test('a client that leaves during its query does not block the others', async () => {
  server.behavior = () => {}
  const points = KINDS.map(fresh)
  const abort = new AbortController()
  const { signal } = abort
  const gone = points.map((decide) => decide(ALLOWED, { signal }).catch(() => 'gone'))
  await expect.poll(() => server.requests.length, { interval: 5 }).toBe(KINDS.length)
  server.behavior = undefined
  const others = points.map((decide) => decide(ALLOWED))
  abort.abort()
  expect(new Set(await Promise.all(gone))).toEqual(new Set(['gone']))
  for (const other of await Promise.all(others))
    expect(other).toMatch(/^(?:200 allowed|503 authority: timeout)$/)
  for (const decide of points) expect(await decide(ALLOWED)).toBe('200 allowed')
})
