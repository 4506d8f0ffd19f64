import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { createClient } from '../../bench/load/client.ts'
import { residentBytesOf } from '../../bench/processes/proc.ts'
import {
  OFFERED_SHARE,
  type Run,
  ratesOf,
  refuseWrong,
  together,
} from '../../bench/sessions/measure.ts'
import type { StepOutcome } from '../../bench/sessions/protocol.ts'
import { failedPercent, resultOf } from '../../bench/sessions/result.ts'
import { createSteps, type User } from '../../bench/sessions/user.ts'
import { ORIGIN_BODY } from '../../bench/stack/backends.ts'
import { openHeap } from '../../bench/stack/inspector.ts'
import { startWorkerd } from '../../bench/stack/workerd.ts'

const MEGABYTE = 1_048_576
const folder = mkdtempSync(join(tmpdir(), 'scenarios-users-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const outcome = (more: Partial<StepOutcome> = {}): StepOutcome => ({
  latenciesMs: [1, 2, 3],
  failed: 0,
  wrong: 0,
  examples: [],
  seconds: 2,
  sessions: 3,
  ...more,
})

describe('the steps of a user', () => {
  const seen: string[] = []
  const state = { status: 200, body: '' }
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.headers.host?.split(':')[0]} ${request.url}`)
    request.resume()
    response.writeHead(state.status, { 'content-type': 'application/json' }).end(state.body)
  }).listen(0)
  const client = createClient({ maxSockets: 1 })
  afterAll(() => {
    client.close()
    server.close()
  })
  const userWith = (more: Partial<User> = {}): User => ({
    number: 0,
    subjectToken: 'a.b.c',
    ...more,
  })

  async function take(step: Parameters<ReturnType<typeof createSteps>['take']>[0], user: User) {
    if (!server.listening) await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const urls = ['127.0.0.1', 'localhost'].map((host) => `http://${host}:${port}`)
    return createSteps(client, urls, { id: 'app', secret: 'x' }).take(step, user, 1)
  }

  test('a token that is accepted after its logout is wrong', async () => {
    Object.assign(state, { status: 200, body: ORIGIN_BODY })
    expect(await take('again', userWith({ access: 'token' }))).toEqual({ wrong: '200' })
    Object.assign(state, { status: 401, body: '{"code":"invalid_token"}' })
    expect(await take('again', userWith({ access: 'token' }))).toBe('right')
  })

  test('a refused good token is wrong, and so is another body', async () => {
    Object.assign(state, { status: 401, body: '{"code":"invalid_token"}' })
    expect(await take('verify', userWith())).toEqual({ wrong: '401 invalid_token' })
    Object.assign(state, { status: 200, body: '{}' })
    expect(await take('verify', userWith())).toEqual({ wrong: '200 with a body of 2 characters' })
  })

  test('a login without both tokens is wrong, and a login with 503 has failed', async () => {
    const user = userWith()
    Object.assign(state, { status: 200, body: '{"access_token":"a"}' })
    expect(await take('login', user)).toMatchObject({ wrong: expect.stringContaining('200') })
    Object.assign(state, { status: 503, body: '{"error":"temporarily_unavailable"}' })
    expect(await take('login', user)).toBe('failed')
    expect(user.refresh).toBeUndefined()
    Object.assign(state, { status: 200, body: '{"access_token":"a","refresh_token":"r"}' })
    expect(await take('login', user)).toBe('right')
    expect(user).toMatchObject({ access: 'a', refresh: 'r' })
  })

  test('a revoked token is sent to another gateway than the logout', async () => {
    Object.assign(state, { status: 200, body: '' })
    seen.length = 0
    const user = userWith({ access: 'a', refresh: 'r' })
    await take('logout', user)
    await take('again', user)
    expect(seen).toEqual(['POST 127.0.0.1 /oauth/revoke', 'GET localhost /orders?limit=20'])
  })
})

describe('a run of sessions', () => {
  const steps = (['login', 'verify', 'logout', 'again'] as const).map((step, index) => ({
    step,
    answers: 100,
    failed: index,
    seconds: 1,
    perSecond: 100 * (index + 1),
    p50Ms: 5,
    p95Ms: 9,
    p99Ms: 12,
    cpuMicros: 900,
    redisCalls: 1,
  }))
  const run: Run = {
    users: 1_000,
    processes: 1,
    pace: 'closed',
    sessions: 1_000,
    steps,
    all: { ...(steps[0] as (typeof steps)[0]), step: 'all', failed: 4, answers: 396 },
  }

  test('fails for one wrong response, or a wrong count at the origin', () => {
    expect(() => refuseWrong('verify', outcome(), 3)).not.toThrow()
    expect(() => refuseWrong('verify', outcome({ wrong: 1, examples: ['200'] }), 3)).toThrow('200')
    expect(() => refuseWrong('verify', outcome(), 2)).toThrow('at the origin')
    expect(() => refuseWrong('again', outcome(), 1)).toThrow('at the origin')
    expect(() => refuseWrong('again', outcome({ latenciesMs: [] }), 0)).toThrow('no correct answer')
  })

  test('outcomes of several senders are merged', () => {
    const all = together([outcome(), outcome({ latenciesMs: [9], failed: 2, seconds: 3 })])
    expect(all).toMatchObject({ latenciesMs: [1, 2, 3, 9], failed: 2, seconds: 3, sessions: 6 })
  })

  test('each step is offered a share of its peak', () => {
    expect(ratesOf(run).verify).toBeCloseTo(200 * OFFERED_SHARE)
  })

  test('failures are a share of all requests, with comparable published figures', () => {
    expect(failedPercent({ answers: 396, failed: 4 })).toBe(1)
    expect(failedPercent({ answers: 99_999, failed: 1 })).toBe(0.001)
    const offered: Run[] = [
      { ...run, pace: 'offered' },
      { ...run, pace: 'offered', processes: 4 },
    ]
    const { figures, checks } = resultOf([run, ...offered])
    const failed = figures.filter(({ id }) => id.endsWith('-failed'))
    expect(failed.map(({ value, beside }) => [value, beside])).toEqual([
      [1, ['catalytic-1000']],
      [1, ['catalytic-1000', 'catalytic-workers']],
    ])
    expect(new Set(figures.map(({ id }) => id)).size).toBe(figures.length)
    expect(checks.map(({ what }) => what)).toContain('tokens that were accepted after their logout')
  })
})

/** A Worker that keeps (`/hold/3`) or drops (`/waste/3`) arrays of a megabyte. */
const WORKER = `const held = []
export default {
  fetch(request) {
    const [, what, count] = new URL(request.url).pathname.split('/')
    for (let i = 0; i < Number(count); i++) {
      const array = new Array(${MEGABYTE} / 8).fill(Math.random())
      if (what === 'hold') held.push(array)
    }
    return new Response('ok')
  },
}`

describe('the heap of an isolate', { timeout: 60_000 }, () => {
  test('used bytes exclude garbage; allocated bytes include it', async () => {
    const file = join(folder, 'holder.js')
    writeFileSync(file, WORKER)
    const workerd = await startWorkerd({
      bundle: { file, compatibilityDate: '2026-11-17', compatibilityFlags: [] },
      variables: {},
      names: ['holder'],
      queueAddress: '127.0.0.1:9',
      directory: folder,
      inspect: true,
    })
    try {
      const ask = async (path: string) => (await fetch(workerd.originOf('holder') + path)).text()
      await ask('/hold/0')
      const heap = await openHeap(workerd.inspector ?? '', 'holder', () => ask('/hold/0'))
      const before = await heap.usedBytes()
      await ask('/waste/20')
      const wasted = await heap.usedBytes()
      await ask('/hold/20')
      const held = await heap.usedBytes()
      expect(wasted - before).toBeLessThan(2 * MEGABYTE)
      expect((held - wasted) / MEGABYTE).toBeCloseTo(20, 0)
      const allocated = await heap.allocatedBytes(() => ask('/waste/20'))
      expect(allocated / MEGABYTE).toBeGreaterThan(15)
      heap.close()
      await expect(openHeap(workerd.inspector ?? '', 'unknown')).rejects.toThrow('no service')
      expect(residentBytesOf(workerd.pid)).toBeGreaterThan(20 * MEGABYTE)
    } finally {
      await workerd.close()
    }
    expect(residentBytesOf(workerd.pid)).toBeUndefined()
  })
})
