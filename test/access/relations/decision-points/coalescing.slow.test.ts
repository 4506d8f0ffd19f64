/**
 * Coalescing: many simultaneous equal queries make few calls, and no answer is older than its
 * query.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { coalescedDecisionPoint } from '../../../../src/access/relations/coalesced-decision-point.ts'
import type { PolicyDecisionPoint } from '../../../../src/access/relations/decision-point.ts'
import { isolate } from './adapters.ts'
import { decisionOf, query, startAuthority, type TestAuthority } from './servers.ts'

const TUPLE = 'doc:1#viewer@user:anne'
const QUESTION = query(TUPLE)
/** Longer than a stall of the machine. */
const MAX_WAIT_MS = 20_000

let server: TestAuthority
let authority: PolicyDecisionPoint
/** Lets the held calls continue to their responses, oldest first. */
let held: (() => void)[]
beforeAll(async () => {
  server = await startAuthority({})
})
afterAll(() => server.close())
beforeEach(() => {
  server.world = { none: [TUPLE] }
  server.behavior = undefined
  server.requests.length = 0
  held = []
  const { authority: adapter } = isolate('openfga', server.url, { timeoutMs: MAX_WAIT_MS })
  authority = coalescedDecisionPoint({ decisionPoint: adapter, maxWaitMs: MAX_WAIT_MS })
})

/** Each call is decided on arrival, and answered on release. */
function hold(status = 200): void {
  server.behavior = async (response) => {
    const allowed = server.world.none?.includes(TUPLE) ?? false
    await new Promise<void>((resolve) => held.push(resolve))
    response.writeHead(status).end(JSON.stringify({ allowed }))
  }
}
const heldCalls = (count: number) => expect.poll(() => held.length).toBe(count)
const decide = (question = QUESTION) => decisionOf(authority, question)
const many = (count: number) => Array.from({ length: count }, () => decide())

describe('simultaneous equal queries', () => {
  test('make two calls for a hundred queries: one for the first, and one for all that arrived meanwhile', async () => {
    hold()
    const first = decide()
    await heldCalls(1)
    const others = many(99)
    held[0]?.()
    expect(await first).toBe('allowed')
    await heldCalls(2)
    held[1]?.()
    expect(new Set(await Promise.all(others))).toEqual(new Set(['allowed']))
    expect(server.requests).toHaveLength(2)
  })

  test('are not answered by a call that began before a tuple was deleted', async () => {
    hold()
    const before = decide()
    await heldCalls(1)
    server.world = { none: [] }
    const after = many(20)
    held[0]?.()
    expect(await before).toBe('allowed')
    await heldCalls(2)
    held[1]?.()
    expect(new Set(await Promise.all(after))).toEqual(new Set(['denied']))
    expect(server.requests).toHaveLength(2)
  })

  test('are coalesced without a cache: successive queries make a call each', async () => {
    for (let count = 0; count < 5; count++) expect(await decide()).toBe('allowed')
    expect(server.requests).toHaveLength(5)
    server.world = { none: [] }
    expect(await decide()).toBe('denied')
  })

  test('see a deleted tuple from the next request on, in a thousand trials', async () => {
    for (let trial = 0; trial < 1_000; trial++) {
      server.world = { none: [TUPLE] }
      const under = decide()
      // In every second trial, a query arrives during the previous call.
      if (trial % 2 === 0) await under
      else await sleep(0)
      server.world = { none: [] }
      const [one, other] = await Promise.all([decide(), decide()])
      expect([one, other]).toEqual(['denied', 'denied'])
      await under
    }
  })

  test('share a failure, and the next query makes a call again', async () => {
    hold(500)
    const first = decide()
    await heldCalls(1)
    const others = many(50)
    held[0]?.()
    expect(await first).toBe('authority:refused')
    expect(new Set(await Promise.all(others))).toEqual(new Set(['authority:refused']))
    expect(server.requests).toHaveLength(1)
    server.behavior = undefined
    expect(await decide()).toBe('allowed')
  })

  test('are not coalesced if they differ in any part', async () => {
    hold()
    const contextualTuples = [query('group:eng#member@user:anne')]
    const questions = [
      QUESTION,
      { ...QUESTION, tenant: 'acme' },
      { ...QUESTION, atLeast: 1 },
      { ...QUESTION, contextualTuples },
      query('doc:1#member@user:anne'),
      query('doc:2#viewer@user:anne'),
      query('doc:1#viewer@user:bob'),
    ]
    const answers = questions.map((question) => decide(question))
    await heldCalls(questions.length)
    for (const go of held) go()
    await Promise.all(answers)
    expect(server.requests).toHaveLength(questions.length)
  })
})

test('a query that waits for a call without end makes its own call', async () => {
  const hanging: PolicyDecisionPoint = { check: () => new Promise(() => {}) }
  const inner = isolate('openfga', server.url, { timeoutMs: MAX_WAIT_MS }).authority
  let calls = 0
  const wrapped = coalescedDecisionPoint({
    decisionPoint: { check: (question) => (++calls === 1 ? hanging : inner).check(question) },
    maxWaitMs: 1_000,
  })
  const dead = wrapped.check(QUESTION)
  const others = Array.from({ length: 10 }, () => decisionOf(wrapped, QUESTION))
  expect(new Set(await Promise.all(others))).toEqual(new Set(['allowed']))
  expect(calls).toBe(2)
  expect(await decisionOf(wrapped, QUESTION)).toBe('allowed')
  expect(await Promise.race([dead, sleep(10, 'still hanging')])).toBe('still hanging')
})

test('an error that is not an outage is rethrown unchanged, and the other queries make their own calls', async () => {
  const inner = isolate('openfga', server.url, { timeoutMs: MAX_WAIT_MS }).authority
  let calls = 0
  const wrapped = coalescedDecisionPoint({
    decisionPoint: {
      async check(question) {
        if (++calls > 1) return inner.check(question)
        await sleep(10)
        throw new TypeError('a defect')
      },
    },
    maxWaitMs: MAX_WAIT_MS,
  })
  const broken = wrapped.check(QUESTION)
  const other = decisionOf(wrapped, QUESTION)
  await expect(broken).rejects.toThrow(TypeError)
  expect(await other).toBe('allowed')
})
