/** Breakers in real workerd, where a request may not wait for another and may end abruptly. */
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type FaultProxy, startFaultProxy } from '../../dev/fault-proxy/proxy.ts'
import { DEFAULT_FAILURES, FIRST_PERIOD_MS } from '../../src/isolate/circuit-breaker.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { type Running, startWorkerd } from '../origin/workerd.ts'

/** Jitter shortens a period by at most half, so two probes are at least this far apart. */
const SHORTEST_PERIOD_MS = FIRST_PERIOD_MS / 2
/** Longer than a period can be. */
const RECOVERY = { timeout: 20_000, interval: 100 }

let server: TestServer
let proxy: FaultProxy
let worker: Running
let received: string[]
/** Called when a request arrives. */
let onRequest: () => void
/** Requests to these paths never get a response. */
const hanging = new Set<string>()

beforeAll(async () => {
  server = await startHttpServer((request, response) => {
    received.push(request.url ?? '')
    onRequest()
    request.resume()
    if (!hanging.has(request.url ?? '')) response.end('here')
  })
  proxy = await startFaultProxy({ target: { host: '127.0.0.1', port: server.port } })
  worker = await startWorkerd({
    entry: join(import.meta.dirname, 'workers/guarded.ts'),
    vars: { ORIGIN_URL: proxy.url },
  })
})
afterAll(async () => {
  await worker.stop()
  await proxy.close()
  await server.close()
})
beforeEach(async () => {
  received = []
  onRequest = () => {}
  hanging.clear()
  await proxy.set({ kind: 'none' })
})

let serial = 0
/** Returns a route without history. */
const newPath = () => `/route-${++serial}`

async function get(path: string, init: RequestInit = {}): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${worker.port}${path}`, init)
  return `${response.status} ${await response.text()}`
}
const impatient = { headers: { 'x-timeout-ms': '100' } }

/**
 * Sends `count` concurrent requests. Returns the answers and the most probes that fit into that
 * time.
 */
async function sendAtOnce(count: number, path: string) {
  const sinceMs = performance.now()
  const answers = await Promise.all(Array.from({ length: count }, () => get(path, impatient)))
  const mostProbes = 1 + Math.floor((performance.now() - sinceMs) / SHORTEST_PERIOD_MS)
  return { answers, mostProbes }
}

async function open(path: string): Promise<void> {
  for (let count = 0; count < DEFAULT_FAILURES; count++)
    expect(await get(path, impatient)).toMatch(/^503 \w+$/)
}

describe('in workerd', () => {
  test.each([
    ['an origin that refuses connections', { kind: 'refuse' }, 'unreachable'],
    ['an origin that never answers', { kind: 'hang' }, 'timeout'],
  ] as const)(
    '%s gets no more calls, and gets them again after its recovery [R23, R24]',
    async (_, fault, name) => {
      const path = newPath()
      await proxy.set(fault)
      await open(path)
      const [{ accepted }, { fromClients }] = [proxy.connections(), proxy.bytes()]
      const { answers, mostProbes } = await sendAtOnce(40, path)
      // If a period ended meanwhile, one of them was the probe.
      const probes = answers.filter((answer) => answer === `503 ${name}`).length
      expect(probes).toBeLessThanOrEqual(mostProbes)
      expect(answers.filter((answer) => answer === `503 ${name}, short-circuited`)).toHaveLength(
        40 - probes,
      )
      if (probes === 0)
        expect([proxy.connections().accepted, proxy.bytes().fromClients]).toEqual([
          accepted,
          fromClients,
        ])
      await proxy.set({ kind: 'none' })
      await expect.poll(() => get(path), RECOVERY).toBe('200 here')
      expect(await get(path)).toBe('200 here')
    },
  )

  test('no request waits for a hanging probe, and a client that disconnects from a probe blocks no other client', async () => {
    const path = newPath()
    await proxy.set({ kind: 'refuse' })
    await open(path)
    await proxy.set({ kind: 'none' })
    hanging.add(path)
    const leave = new AbortController()
    let probe: Promise<string> | undefined
    const arrived = new Promise<string>((resolve) => {
      onRequest = () => resolve('the origin is called')
    })
    await expect
      .poll(() => {
        probe = get(path, { signal: leave.signal }).catch(() => 'left')
        return Promise.race([probe, arrived])
      }, RECOVERY)
      .toBe('the origin is called')
    expect(received).toEqual([path])
    // Each of these is answered although the probe is not. One of them may be the next probe.
    const { answers, mostProbes } = await sendAtOnce(20, path)
    const shortCircuited = answers.filter((answer) =>
      /^503 (unreachable|timeout), short-circuited$/.test(answer),
    )
    expect(shortCircuited.length).toBeGreaterThanOrEqual(20 - mostProbes)
    expect(answers.filter((answer) => answer === '503 timeout')).toHaveLength(
      20 - shortCircuited.length,
    )
    leave.abort()
    expect(await probe).toBe('left')
    hanging.clear()
    await expect.poll(() => get(path), RECOVERY).toBe('200 here')
  })

  test('a route that hangs affects no other route', async () => {
    const [stuck, sound] = [newPath(), newPath()]
    hanging.add(stuck)
    await open(stuck)
    for (let count = 0; count < 20; count++) expect(await get(sound)).toBe('200 here')
    expect(await get('/states')).toContain(JSON.stringify([`GET ${sound}`, 'closed']))
    expect(received.filter((path) => path === sound)).toHaveLength(20)
  })

  test('a slow upload is not a failure of the origin', async () => {
    const path = newPath()
    hanging.add(path)
    for (let count = 0; count < 2 * DEFAULT_FAILURES; count++) {
      const upload = { ...impatient, method: 'POST', body: 'x' }
      expect(await get(path, upload)).toBe('503 timeout')
    }
    hanging.clear()
    expect(await get(path, { method: 'POST', body: 'x' })).toBe('200 here')
  })
})
