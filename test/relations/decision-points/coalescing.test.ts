/** Many that ask the same at once: few calls, and no answer that is older than its question. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { coalescedDecisionPoint } from '../../../src/relations/coalesced-decision-point.ts'
import type { PolicyDecisionPoint } from '../../../src/relations/decision-point.ts'
import { isolate } from './adapters.ts'
import { decisionOf, query, startAuthority, type TestAuthority } from './servers.ts'

const TUPLE = 'doc:1#viewer@user:anne'
const QUESTION = query(TUPLE)
const MAX_WAIT_MS = 2_000

let server: TestAuthority
let authority: PolicyDecisionPoint
/** Lets the calls that are held go on to their answers, oldest first. */
let held: (() => void)[]
beforeAll(async () => {
  server = await startAuthority({})
})
afterAll(() => server.close())
beforeEach(() => {
  server.world = { none: [TUPLE] }
  server.behaviour = undefined
  server.asked.length = 0
  held = []
  const { authority: adapter } = isolate('openfga', server.url, { timeoutMs: MAX_WAIT_MS })
  authority = coalescedDecisionPoint({ decisionPoint: adapter, maxWaitMs: MAX_WAIT_MS })
})

/** Each call is decided when it comes, and answered when it is let go. */
function hold(status = 200): void {
  server.behaviour = async (response) => {
    const allowed = server.world.none?.includes(TUPLE) ?? false
    await new Promise<void>((resolve) => held.push(resolve))
    response.writeHead(status).end(JSON.stringify({ allowed }))
  }
}
const heldCalls = (count: number) => expect.poll(() => held.length).toBe(count)
const ask = (question = QUESTION) => decisionOf(authority, question)
const many = (count: number) => Array.from({ length: count }, () => ask())

describe('calls that are the same', () => {
  test('a hundred at once are two: the first, and one for all who came meanwhile', async () => {
    hold()
    const first = ask()
    await heldCalls(1)
    const others = many(99)
    held[0]?.()
    expect(await first).toBe('allowed')
    await heldCalls(2)
    held[1]?.()
    expect(new Set(await Promise.all(others))).toEqual(new Set(['allowed']))
    expect(server.asked).toHaveLength(2)
  })

  test('who asks after a tuple was deleted is not answered by a call that began before', async () => {
    hold()
    const before = ask()
    await heldCalls(1)
    server.world = { none: [] }
    const after = many(20)
    held[0]?.()
    expect(await before).toBe('allowed')
    await heldCalls(2)
    held[1]?.()
    expect(new Set(await Promise.all(after))).toEqual(new Set(['denied']))
    expect(server.asked).toHaveLength(2)
  })

  test('no answer is kept: one after the other is a call each', async () => {
    for (let count = 0; count < 5; count++) expect(await ask()).toBe('allowed')
    expect(server.asked).toHaveLength(5)
    server.world = { none: [] }
    expect(await ask()).toBe('denied')
  })

  test('a thousand trials: from the next request on a deleted tuple denies', async () => {
    for (let trial = 0; trial < 1_000; trial++) {
      server.world = { none: [TUPLE] }
      const under = ask()
      // Some ask while the call before is under way, some do not.
      if (trial % 2 === 0) await under
      else await sleep(0)
      server.world = { none: [] }
      const [one, other] = await Promise.all([ask(), ask()])
      expect([one, other]).toEqual(['denied', 'denied'])
      await under
    }
  })

  test('a failure is shared, and the next one asks again', async () => {
    hold(500)
    const first = ask()
    await heldCalls(1)
    const others = many(50)
    held[0]?.()
    expect(await first).toBe('authority:refused')
    expect(new Set(await Promise.all(others))).toEqual(new Set(['authority:refused']))
    expect(server.asked).toHaveLength(1)
    server.behaviour = undefined
    expect(await ask()).toBe('allowed')
  })

  test('what differs in anything is another call', async () => {
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
    const answers = questions.map((question) => ask(question))
    await heldCalls(questions.length)
    for (const go of held) go()
    await Promise.all(answers)
    expect(server.asked).toHaveLength(questions.length)
  })
})

test('who waits for a call that never ends asks for itself', async () => {
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

test('what is no outage is thrown as it is, and the others ask for themselves', async () => {
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
