import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sendClosed } from '../../bench/load/closed.ts'
import { bearing, ORDERS_PATH, orders } from '../../bench/load/questions.ts'
import { type Contestant, measureRounds } from '../../bench/measure/rounds.ts'
import {
  bare,
  byHandDurable,
  byHandLog,
  type NodeGateway,
  oursDurable,
  oursLog,
  type Started,
  startOnNode,
} from '../../bench/node/contestants.ts'
import {
  type Costs,
  openRedis,
  parseUsage,
  type RedisMeter,
  storedBytesIn,
  withCosts,
} from '../../bench/node/costs.ts'
import { figuresOf, type Measured } from '../../bench/node/figures.ts'
import { makeProbes, tryOut } from '../../bench/node/probes.ts'
import { aimMet, aimText } from '../../bench/report/format.ts'
import { ORIGIN_BODY, startBackends } from '../../bench/stack/backends.ts'
import { type BenchTokens, createCredentials, mintTokens } from '../../bench/stack/credentials.ts'
import type { Ground } from '../../bench/stack/gateway.ts'
import { sampleOf } from './sample.ts'

/** So low that the test reaches it. */
const LIMIT = 3

/**
 * Sends requests with one token until the gateway refuses. Throws an `Error` of one line unless it
 * refuses with 429 after `limit`, or after twice the limit if a new window has begun.
 */
async function checkLimit({ title }: { readonly title: string }, url: string, token = '') {
  for (let sent = 0; sent <= 2 * LIMIT; sent++) {
    const response = await fetch(url + ORDERS_PATH, { headers: bearing(token) })
    await response.text()
    if (response.status === 429 && sent >= LIMIT) return
    if (response.status !== 200) throw new Error(`${title}: ${response.status} below the limit`)
  }
  throw new Error(`${title}: no refusal above the limit`)
}

describe('a gateway on Node', () => {
  const directory = mkdtempSync(join(tmpdir(), 'bench-node-test-'))
  const closers: (() => Promise<void>)[] = []
  const shutdown = {
    signal: new AbortController().signal,
    defer: (close: () => Promise<void>) => void closers.push(close),
  }
  let ground: Ground
  let tokens: BenchTokens
  let redis: RedisMeter

  const start = (gateway: NodeGateway, limit?: number): Promise<Started> =>
    startOnNode({ directory, shutdown, onProgress() {} }, gateway, {
      ground,
      tokens,
      ...(limit !== undefined && { limit }),
    })

  beforeAll(async () => {
    const backends = await startBackends()
    closers.push(backends.close)
    ground = { backends, ...(await createCredentials(backends)) }
    tokens = await mintTokens(ground)
    redis = await openRedis(backends.redis.directUrl)
    closers.push(async () => redis.close())
  })
  afterAll(async () => {
    for (const close of closers.toReversed()) await close()
    rmSync(directory, { recursive: true, force: true })
  })

  test('refuses above a limit, as the opponent by hand does; a bare proxy does not', async () => {
    for (const [index, gateway] of [oursLog, byHandLog].entries()) {
      const { url, close } = await start(gateway, LIMIT)
      await checkLimit(gateway, url, tokens.writers[index])
      await close()
    }
    const { url, close } = await start(bare)
    const unlimited = checkLimit(bare, url, tokens.writers[9])
    await expect(unlimited).rejects.toThrow('bare proxy: no refusal above the limit')
    await close()
  })

  test('that accepts a bad token is not measured', async () => {
    const careless = createServer((_, response) => response.end(ORIGIN_BODY)).listen(0, '127.0.0.1')
    await once(careless, 'listening')
    closers.push(async () => void careless.close())
    const url = `http://127.0.0.1:${(careless.address() as AddressInfo).port}`
    const probes = await makeProbes(tokens, ground.backends)
    const missing = probes.filter(({ id }) => id === 'missing')
    await expect(tryOut(byHandLog, url, missing, ground.backends)).rejects.toThrow(
      'by hand, log responds to no token with 200',
    )
  })

  test.each([
    // Our consumer runs scripts of its own.
    [oursDurable, undefined],
    [byHandDurable, 1],
    [oursLog, 1],
    [bare, 0],
  ] as const)(
    'passes the probes, and a round ends when its events are stored: $id',
    async (gateway, scripts) => {
      const { backends } = ground
      const { url, pid, directory: own, close } = await start(gateway)
      await tryOut(gateway, url, await makeProbes(tokens, backends), backends)
      const before = storedBytesIn(own)
      const isOurs = gateway.file === 'gateway.ts'
      const contestant: Contestant = {
        ...{ id: gateway.id, title: gateway.title, pid, url },
        questions: orders('read', tokens.writers),
        expected: { origin: 1, redis: 0, identified: gateway !== bare, asserted: isOurs },
      }
      const costs: Costs[] = []
      const options = {
        rounds: 1,
        seconds: 0.5,
        pace: { connections: 2 },
        backends,
        onProgress() {},
      }
      const [summary] = await measureRounds(
        [withCosts(contestant, { redis }, costs, scripts)],
        options,
      )
      expect(summary?.requests).toBeGreaterThan(0)
      expect(costs).toHaveLength(1)
      const streams = await redis.direct.scanStream({ type: 'stream' }).toArray()
      for (const stream of streams.flat()) expect(await redis.direct.xlen(stream), stream).toBe(0)
      if (gateway.isDurable) expect(storedBytesIn(own)).toBeGreaterThan(before)
      await close()
    },
  )

  test('a round with another number of scripts fails', async () => {
    const { url, pid, close } = await start(bare)
    const contestant: Contestant = {
      ...{ id: bare.id, title: bare.title, pid, url },
      questions: orders('read', tokens.writers),
      expected: { origin: 1, redis: 0, identified: false },
    }
    const { backends } = ground
    const options = { rounds: 1, seconds: 0.2, pace: { connections: 2 }, backends, onProgress() {} }
    await expect(measureRounds([withCosts(contestant, { redis }, [], 1)], options)).rejects.toThrow(
      'bare proxy: 0 scripts for one response',
    )
    await close()
  })

  test('the opponent by hand stores each event once, also after it was killed', async () => {
    const count = 40
    const load = { connections: 4, until: 'once' } as const
    const questions = orders('read', tokens.writers.slice(0, count))
    const killed = await start({ ...byHandDurable, id: 'killed' })
    await sendClosed({ ...load, questions, url: killed.url })
    // With the events that its thread has not stored.
    process.kill(killed.pid, 'SIGKILL')
    const next = await start({ ...byHandDurable, id: 'killed' })
    await sendClosed({ ...load, questions, url: next.url })
    await redis.untilDrained()
    await next.close()
    const database = new DatabaseSync(join(next.directory, 'audit.db'), { readOnly: true })
    expect(database.prepare('SELECT count(*) AS rows FROM events').get()).toEqual({
      rows: 2 * count,
    })
    database.close()
  })
})

test('time and CPU of Redis are parsed from its statistics', () => {
  const text = [
    'used_cpu_sys_main_thread:0.5',
    'used_cpu_user_main_thread:1.25',
    'cmdstat_evalsha:calls=3,usec=90,usec_per_call=30',
    'cmdstat_eval:calls=1,usec=10,usec_per_call=10',
    'cmdstat_get:calls=7,usec=7,usec_per_call=1',
  ].join('\r\n')
  expect(parseUsage(text)).toEqual({ calls: 4, micros: 100, cpuMicros: 1_750_000 })
})

describe('figures', () => {
  const costs = (writtenBytes: number, redisMicros: number): Costs => ({
    ...{ scripts: 1, scriptMicros: 5, postgresMicros: 4 },
    writtenBytes,
    redisMicros,
  })
  const measured = (id: string, ...cpu: readonly number[]): Measured => ({
    gateway: { id, title: id, isDurable: id.includes('durable') },
    summary: {
      ...sampleOf({ cpuMicros: cpu[0] ?? 0 }),
      ...{ id, title: id },
      rounds: cpu.map((cpuMicros) => sampleOf({ cpuMicros })),
    },
    costs: cpu.map(() => costs(900, id.startsWith('by-hand') ? 10 : 16)),
    storedBytes: 290,
  })
  const all = [
    measured('bare', 50, 100, 60),
    measured('by-hand-log', 75, 150, 90),
    measured('by-hand-durable', 100, 200, 120),
    measured('log', 100, 200, 120),
    measured('durable', 150, 250, 160),
  ]
  const figureOf = (id: string, of = all) => figuresOf(of).find((figure) => figure.id === id)

  test('each round is compared with the neighbouring round, so that noise cancels out', () => {
    expect(figureOf('log-to-bare')).toMatchObject({ value: 2, quartiles: [2, 2] })
    expect(figureOf('durable-added')).toMatchObject({ value: 50, quartiles: [45, 50] })
    expect(figureOf('durable-to-by-hand-durable')?.value).toBe(1.333)
    expect(figureOf('redis-cpu-to-by-hand')?.value).toBe(1.6)
  })

  test('have the bytes of an event, and those of PostgreSQL only if it was measured', () => {
    expect([figureOf('written')?.value, figureOf('stored')?.value]).toEqual([0.9, 0.29])
    expect(figureOf('postgres-cpu-of-event')).toBeUndefined()
    const postgres = measured('postgres', 130, 230, 150)
    expect(figureOf('postgres-cpu-of-event', [...all, postgres])?.value).toBe(4)
  })

  test('an equal value meets its aim, and a stretch follows it', () => {
    const redis = figureOf('redis-cpu-to-by-hand')
    expect(redis && [aimMet(redis), aimText(redis)]).toEqual([true, 'at most 1.6, stretch 1.3'])
  })

  test('without the bare proxy there are none', () => {
    expect(() => figuresOf(all.slice(1))).toThrow('bare was not measured')
  })
})
