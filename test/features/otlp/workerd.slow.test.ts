import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Running, startWorkerd } from '../../origin/workerd.ts'
import { startCollector } from './collector.ts'

const PATIENCE = { timeout: 100_000 }

let collector: Awaited<ReturnType<typeof startCollector>>
let worker: Running
beforeAll(async () => {
  collector = await startCollector()
  const entry = join(import.meta.dirname, 'worker.ts')
  worker = await startWorkerd({ entry, vars: { COLLECTOR: `${collector.url}/v1/traces` } })
  // The request that detected that the server listens.
  await vi.waitFor(() => expect(collector.received.splice(0)).toHaveLength(1), PATIENCE)
})
afterAll(async () => {
  await worker.stop()
  await collector.close()
})

const spans = () => collector.received.flatMap((call) => call.spans)

test('in workerd, spans of many requests are exported together, after the responses', async () => {
  const answers = await Promise.all(
    Array.from({ length: 30 }, () => fetch(`http://127.0.0.1:${worker.port}/`)),
  )
  for (const answer of answers) expect(await answer.text()).toBe('ok')
  const traces = () => new Set(spans().map(({ traceId }) => traceId)).size
  await vi.waitFor(() => expect(traces()).toBe(30), PATIENCE)
  // One export; a few on a machine so busy that the requests take more than two seconds.
  expect(collector.received.length).toBeLessThan(5)
})

test('in workerd, a silent collector delays no response', async () => {
  const before = collector.received.length
  collector.setAnswer('never')
  for (let count = 0; count < 5; count++) {
    const answer = await fetch(`http://127.0.0.1:${worker.port}/`)
    expect(answer.status).toBe(200)
    expect(await answer.text()).toBe('ok')
  }
  await vi.waitFor(() => expect(collector.received.length).toBeGreaterThan(before), PATIENCE)
  expect((await fetch(`http://127.0.0.1:${worker.port}/`)).status).toBe(200)
})
