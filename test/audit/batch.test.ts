import { describe, expect, test } from 'vitest'
import {
  createBatches,
  MAX_BATCH_BYTES,
  MAX_BATCH_MESSAGES,
  MAX_PENDING_BYTES,
  NO_DUTY,
} from '../../src/audit/batch.ts'

const SENDING_LEASE_MS = 20_000
const BATCH_LEASE_MS = 250

const T0 = 1_000_000

describe('the duty to send a batch', () => {
  test('belongs to the request that opens the batch, and requests that join it have none', () => {
    const batches = createBatches()
    const { hold, send } = batches.add('a', T0)
    expect(hold?.messages).toEqual(['a'])
    expect(send).toBeUndefined()
    expect(batches.add('b', T0 + 10)).toBe(NO_DUTY)
    expect(hold && batches.take(hold, T0 + 50)).toBe(true)
    expect(hold?.messages).toEqual(['a', 'b'])
  })

  test('is given to one request only', () => {
    const batches = createBatches()
    const { hold } = batches.add('a', T0)
    if (hold === undefined) throw new Error('the first request must hold the batch')
    expect(batches.take(hold, T0 + 50)).toBe(true)
    expect(batches.take(hold, T0 + 51)).toBe(false)
  })

  test('a message after a batch was taken opens another batch', () => {
    const batches = createBatches()
    const first = batches.add('a', T0).hold
    if (first) batches.take(first, T0 + 50)
    const second = batches.add('b', T0 + 51).hold
    expect(second?.messages).toEqual(['b'])
    expect(first?.messages).toEqual(['a'])
  })

  test('moves to the request that fills the batch to 100 messages, and the opener has none left', () => {
    const batches = createBatches()
    const { hold } = batches.add('0', T0)
    const duties = Array.from({ length: MAX_BATCH_MESSAGES - 1 }, (_, index) =>
      batches.add(`${index + 1}`, T0),
    )
    expect(duties.slice(0, -1).every((duty) => duty === NO_DUTY)).toBe(true)
    expect(duties.at(-1)?.send?.messages).toHaveLength(MAX_BATCH_MESSAGES)
    expect(hold && batches.take(hold, T0 + 50)).toBe(false)
  })

  test('moves to the request with the first message that does not fit, which also opens the next batch', () => {
    const batches = createBatches()
    const message = 'x'.repeat(8_000)
    let duty = batches.add(message, T0)
    let sent = duty.send
    while (sent === undefined) {
      duty = batches.add(message, T0)
      sent = duty.send
    }
    expect(duty.hold?.messages).toEqual([message])
    expect(sent.bytes).toBeLessThanOrEqual(MAX_BATCH_BYTES)
    expect(sent.bytes + 8_100).toBeGreaterThan(MAX_BATCH_BYTES)
  })

  test('is computed from bytes of UTF-8, not characters', () => {
    const batches = createBatches()
    const message = '漢'.repeat(30_000)
    batches.add(message, T0)
    batches.add(message, T0)
    expect(batches.add(message, T0).send?.messages).toHaveLength(2)
  })
})

describe('a batch after the end of its request context', () => {
  test("is sent by the next request after its lease, with that request's own message", () => {
    const batches = createBatches()
    batches.add('stranded', T0)
    expect(batches.add('b', T0 + BATCH_LEASE_MS - 1)).toBe(NO_DUTY)
    expect(batches.add('c', T0 + BATCH_LEASE_MS).send?.messages).toEqual(['stranded', 'b', 'c'])
  })

  test('is handed out again once per lease', () => {
    const batches = createBatches()
    const { hold } = batches.add('a', T0)
    if (hold) batches.take(hold, T0 + 50)
    const diedMs = T0 + 50 + SENDING_LEASE_MS
    expect(batches.overdue(diedMs - 1)).toBeUndefined()
    expect(batches.overdue(diedMs)).toBe(hold)
    expect(batches.overdue(diedMs)).toBeUndefined()
    expect(batches.overdue(diedMs + SENDING_LEASE_MS)).toBe(hold)
  })

  test('is never handed out again after it arrived', () => {
    const batches = createBatches()
    const { hold } = batches.add('a', T0)
    if (hold) {
      batches.take(hold, T0)
      batches.settle(hold)
    }
    expect(batches.overdue(T0 + 10 * SENDING_LEASE_MS)).toBeUndefined()
  })
})

test('memory is bounded: messages beyond the bound are counted, and sending frees the room', () => {
  const batches = createBatches()
  const message = 'x'.repeat(8_092)
  const taken = []
  let accepted = 0
  for (; accepted < 2_000 && batches.takeLost() === 0; accepted += 1) {
    const { send } = batches.add(message, T0)
    if (send) taken.push(send)
  }
  expect((accepted - 1) * 8_192).toBeLessThanOrEqual(MAX_PENDING_BYTES)
  batches.add(message, T0)
  batches.add(message, T0)
  expect(batches.takeLost()).toBe(2)
  expect(batches.takeLost()).toBe(0)
  for (const batch of taken) batches.settle(batch)
  batches.add(message, T0)
  expect(batches.takeLost()).toBe(0)
})
