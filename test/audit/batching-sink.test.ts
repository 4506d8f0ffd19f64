import { expect, test } from 'vitest'
import { batchingAuditSink } from '../../src/audit/batching-sink.ts'
import { consoleAuditSink } from '../../src/audit/truncate.ts'
import { anEvent } from './event.ts'

/**
 * Creates a sink with a clock and timers that the test sets, and a transport that records its
 * batches.
 */
function arrange() {
  let nowMs = 1_000_000
  const sleeping: { untilMs: number; wake: () => void }[] = []
  const sent: string[][] = []
  const lost: number[] = []
  const outcomes: Promise<void>[] = []
  const sink = batchingAuditSink({
    now: () => nowMs,
    sleep: (ms) =>
      new Promise((wake) => {
        sleeping.push({ untilMs: nowMs + ms, wake })
      }),
    transport: {
      send(events, count) {
        sent.push(events.map((event) => JSON.parse(event).id))
        lost.push(count)
        return outcomes.shift() ?? Promise.resolve()
      },
    },
  })
  const pending: Promise<unknown>[] = []
  return {
    sink,
    sent,
    lost,
    outcomes,
    pending,
    /** Simulates a request with its own context. Returns the id of its event. */
    request(waitUntil = (promise: Promise<unknown>) => void pending.push(promise)) {
      const event = anEvent()
      sink.record(event, waitUntil)
      return event.id
    },
    async advance(ms: number) {
      nowMs += ms
      for (const sleeper of sleeping.splice(0)) {
        if (sleeper.untilMs <= nowMs) sleeper.wake()
        else sleeping.push(sleeper)
      }
      // Runs everything that waited for the clock.
      await new Promise((resolve) => setImmediate(resolve))
    },
    killSleepers: () => sleeping.splice(0),
  }
}

test('requests of one isolate share a batch, which is sent once after 50 ms', async () => {
  const { request, advance, sent, pending } = arrange()
  const ids = [request(), request(), request()]
  await advance(49)
  expect(sent).toEqual([])
  await advance(1)
  expect(sent).toEqual([ids])
  expect(pending).toHaveLength(1)
  await Promise.all(pending)
})

test('only the request that opened or filled a batch waits for its delivery', async () => {
  const { request, advance, sent, pending } = arrange()
  const ids = Array.from({ length: 250 }, () => request())
  await advance(0)
  expect(sent).toEqual([ids.slice(0, 100), ids.slice(100, 200)])
  await advance(50)
  expect(sent.flat()).toEqual(ids)
  expect(pending).toHaveLength(5)
})

test('no event is lost when the context of the request that holds the batch ends', async () => {
  const { request, advance, sent, killSleepers } = arrange()
  const stranded = request()
  killSleepers()
  await advance(250)
  const next = request()
  await advance(0)
  expect(sent).toEqual([[stranded, next]])
})

test('a batch is sent again by a later request if its sender has ended: it arrives at least once', async () => {
  const { request, advance, sent, outcomes } = arrange()
  outcomes.push(new Promise(() => {}))
  const first = request()
  await advance(50)
  expect(sent).toEqual([[first]])
  await advance(20_000)
  const second = request()
  await advance(50)
  expect(sent).toEqual([[first], [first], [second]])
  await advance(20_000)
  request()
  await advance(50)
  expect(sent.filter((ids) => ids[0] === first)).toHaveLength(2)
})

test('the id is the same when an event is sent again [S66]', async () => {
  const { request, advance, sent, outcomes } = arrange()
  outcomes.push(new Promise(() => {}))
  const id = request()
  await advance(50)
  await advance(20_000)
  request()
  await advance(0)
  expect(sent).toEqual([[id], [id]])
})

test('the number of events beyond the bound is passed to the transport', async () => {
  const { sink, advance, lost, outcomes } = arrange()
  for (let batch = 0; batch < 60; batch += 1) outcomes.push(new Promise(() => {}))
  const large = anEvent({ reason: 'r'.repeat(7_000) })
  for (let index = 0; index < 1_500; index += 1) sink.record(large, () => {})
  await advance(20_000)
  sink.record(anEvent(), () => {})
  await advance(50)
  expect(lost.reduce((sum, count) => sum + count)).toBeGreaterThan(0)
})

test('without a queue events are lines of JSON', () => {
  const lines: string[] = []
  const event = anEvent()
  consoleAuditSink((line) => lines.push(line)).record(event, () => {
    throw new Error('writing a line needs no waitUntil')
  })
  expect(lines.map((line) => JSON.parse(line))).toEqual([event])
})
