import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { orders } from '../../bench/load/questions.ts'
import { type Contestant, measureRounds } from '../../bench/measure/rounds.ts'
import { checkLimit, LOW_LIMIT } from '../../bench/node/limit.ts'
import {
  bareOnNode,
  byHandOnNode,
  byHandOnWorkers,
  oursOnNode,
  streamedOnNode,
} from '../../bench/node/peers.ts'
import { type RedisUse, withRedisUse } from '../../bench/node/redis-use.ts'
import type { Peer } from '../../bench/peers/peer.ts'
import { makeProbes, type Probe, tryOut } from '../../bench/peers/probes.ts'
import { type Entrant, startAll } from '../../bench/peers/start.ts'
import { connectDirectly } from '../../bench/relations/direct-redis.ts'
import { aimText } from '../../bench/report/format.ts'
import { type Backends, startBackends } from '../../bench/stack/backends.ts'
import { type BenchTokens, createCredentials, mintTokens } from '../../bench/stack/credentials.ts'

describe('a gateway on Node', () => {
  const directory = mkdtempSync(join(tmpdir(), 'node-peers-test-'))
  const closers: (() => Promise<void>)[] = []
  let backends: Backends
  let tokens: BenchTokens
  let probes: readonly Probe[]

  async function start(peers: readonly Peer[], limit?: number): Promise<readonly Entrant[]> {
    const shutdown = {
      signal: new AbortController().signal,
      defer: (close: () => Promise<void>) => void closers.push(close),
    }
    const limited = limit === undefined ? {} : { limit }
    const entry = { peers, backends, tokens, directory, shutdown, ...limited, onProgress() {} }
    return (await startAll(entry)).entrants
  }

  beforeAll(async () => {
    backends = await startBackends()
    closers.push(backends.close)
    tokens = await mintTokens(await createCredentials(backends))
    probes = await makeProbes(tokens, backends)
  })
  afterAll(async () => {
    for (const close of closers.toReversed()) await close()
    rmSync(directory, { recursive: true, force: true })
  })

  test('refuses above a limit before it is measured, as the opponents do', async () => {
    const entrants = await start([oursOnNode, byHandOnNode, byHandOnWorkers], LOW_LIMIT)
    expect(entrants).toHaveLength(3)
    for (const [index, { peer, running }] of entrants.entries())
      await checkLimit(peer, running, tokens.writers[index] ?? '')
  })

  test('without a limit is not measured', async () => {
    for (const { peer, running } of await start([bareOnNode]))
      await expect(checkLimit(peer, running, tokens.writers[9] ?? '')).rejects.toThrow(
        'bare proxy on Node: no refusal above the limit',
      )
  })

  test('passes the probes, and runs one script in Redis for each response', async () => {
    const entrants = await start([bareOnNode, oursOnNode, streamedOnNode, byHandOnNode])
    for (const { peer, running } of entrants) await tryOut(peer, running, probes, backends)
    const redis = await connectDirectly(backends.redis.directUrl)
    closers.push(async () => redis.close())
    async function measure({ id }: Peer): Promise<readonly RedisUse[]> {
      const entrant = entrants.find(({ peer }) => peer.id === id)
      if (entrant === undefined) throw new Error(`${id} did not start`)
      const { title, identifies } = entrant.peer
      const contestant: Contestant = {
        id,
        title,
        pid: entrant.running.pid,
        url: entrant.running.url,
        questions: orders('read', tokens.writers),
        expected: { origin: 1, redis: 0, identified: identifies, asserted: id === oursOnNode.id },
      }
      const uses: RedisUse[] = []
      await measureRounds([withRedisUse(contestant, redis, uses, 1)], {
        rounds: 1,
        seconds: 1,
        pace: { connections: 2 },
        backends,
        onProgress() {},
      })
      return uses
    }
    for (const peer of [oursOnNode, byHandOnNode]) {
      const [use] = await measure(peer)
      expect(use?.scriptMicros, peer.title).toBeGreaterThan(0)
    }
    await expect(measure(bareOnNode)).rejects.toThrow('0.00 scripts for one response')
  })
})

test('a stretch follows its aim', () => {
  const aim = { at: 'most', value: 3, stretch: 2.2 } as const
  expect(aimText({ unit: 'ratio', aim })).toBe('at most 3, stretch 2.2')
})
