import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkCounts, measureRounds, type Sample, summaryOf } from '../../bench/measure/rounds.ts'
import { featureTable, figuresOf, standingsOf } from '../../bench/peers/figures.ts'
import { HANDWRITTEN_CONFIG } from '../../bench/peers/handwritten/start.ts'
import type { Peer } from '../../bench/peers/peer.ts'
import { makeProbes, type Probe, tryOut } from '../../bench/peers/probes.ts'
import { startServer } from '../../bench/peers/server.ts'
import { type Entry, PEERS, startAll } from '../../bench/peers/start.ts'
import { peerContestant } from '../../bench/scenarios/peers.ts'
import { type Backends, ORIGIN_BODY, startBackends } from '../../bench/stack/backends.ts'
import { type BenchTokens, createCredentials, mintTokens } from '../../bench/stack/credentials.ts'
import { ROOT } from '../../dev/start/settings.ts'
import { sampleOf } from './sample.ts'

const peerById = (id: string) => PEERS.find((known) => known.id === id) as Peer
const handwritten = peerById('handwritten')
/** Low, so that the test reaches it. */
const LIMIT = 3

describe('standings', () => {
  const sample = (cpuMicros: number, requestsPerSecond: number) =>
    sampleOf({ cpuMicros, requestsPerSecond, p99Ms: 2 })
  const contest = (id: string, rounds: readonly Sample[]) => summaryOf({ id, title: id }, rounds)

  test('each round is compared with our neighbouring round, so that noise cancels out', () => {
    const standings = standingsOf(
      [
        contest('ours', [sample(0.2, 2_000), sample(0.4, 1_000), sample(0.2, 2_000)]),
        contest('handwritten', [sample(0.4, 1_000), sample(0.8, 500), sample(0.5, 1_000)]),
      ],
      'ours',
    )
    expect(standings[0]?.oursToIt).toMatchObject({
      cpuMicros: { median: 1 },
      requestsPerSecond: { median: 1 },
    })
    expect(standings[1]?.oursToIt).toMatchObject({
      cpuMicros: { median: 0.5, quartiles: [0.45, 0.5] },
      requestsPerSecond: { median: 2 },
    })
    const figures = figuresOf(standings, 'ours')
    expect(new Set(figures.map(({ id }) => id)).size).toBe(figures.length)
    expect(
      figures.filter(({ aim }) => aim !== undefined).map(({ id, value }) => [id, value]),
    ).toEqual([
      ['cpu-to-handwritten', 0.5],
      ['rps-to-handwritten', 2],
      ['p99-to-handwritten', 1],
    ])
  })

  test('without our rounds there is no comparison', () => {
    expect(() => standingsOf([contest('haproxy', [sample(1, 1)])], 'ours')).toThrow(RangeError)
  })
})

describe('a measurement fails', () => {
  const counts = { requests: 105, identified: 105, asserted: 0, calls: 210 }
  const { identifies: identified, redisCalls: redis } = handwritten
  const counted = (others: Partial<typeof counts>) => () =>
    checkCounts(
      'handwritten',
      { answers: 100, aborted: 20, counts: { ...counts, ...others } },
      { origin: 1, redis, identified, asserted: false, late: 20 },
    )

  test('for answers that did not come from the origin', () => {
    expect(counted({})).not.toThrow()
    expect(counted({ requests: 99, identified: 99 })).toThrow('99 requests at the origin')
  })
  test('for an origin that did not receive the identity', () => {
    expect(counted({ identified: 99 })).toThrow('99 had an identity')
  })
  test('for too few or too many calls to Redis', () => {
    expect(counted({ calls: 199 })).toThrow('calls to Redis')
    expect(counted({ calls: 300 })).toThrow('calls to Redis')
  })
})

describe('gateways', () => {
  const directory = mkdtempSync(join(tmpdir(), 'peers-test-'))
  const closers: (() => Promise<void>)[] = []
  const entry = (peers: readonly Peer[], limit?: number): Entry => ({
    peers,
    backends,
    tokens,
    directory,
    ...(limit !== undefined && { limit }),
    shutdown: { signal: new AbortController().signal, defer: (close) => closers.push(close) },
    onProgress() {},
  })
  let backends: Backends
  let tokens: BenchTokens
  let probes: readonly Probe[]
  beforeAll(async () => {
    mkdirSync(directory, { recursive: true })
    backends = await startBackends()
    closers.push(backends.close)
    tokens = await mintTokens(await createCredentials(backends))
    probes = await makeProbes(tokens, backends)
  })
  afterAll(async () => {
    for (const close of closers.toReversed()) await close()
    rmSync(directory, { recursive: true, force: true })
  })

  const absent = (optional: boolean): Peer => ({
    ...peerById('haproxy'),
    id: 'absent',
    title: 'Absent',
    optional,
    start: async () => ({
      ...(await startServer({ program: 'no-such-gateway', args: [], port: 9, directory })),
      version: '',
    }),
  })

  test('that are missing are skipped, with the reason', async () => {
    expect(await startAll(entry([absent(true)]))).toEqual({
      entrants: [],
      skipped: ['Absent was skipped: not on this machine'],
    })
  })

  test('that are required and missing fail the run', async () => {
    await expect(startAll(entry([absent(false)]))).rejects.toThrow('not on this machine')
  })

  test('that accept a bad token are not measured', async () => {
    const careless = createServer((_, response) => response.end(ORIGIN_BODY)).listen(0, '127.0.0.1')
    await once(careless, 'listening')
    closers.push(async () => void careless.close())
    const url = `http://127.0.0.1:${(careless.address() as AddressInfo).port}`
    const missing = probes.filter(({ id }) => id === 'missing')
    await expect(tryOut(handwritten, { url }, missing, backends)).rejects.toThrow(
      'handwritten responds to no token with 200',
    )
  })

  test('count each subject separately', async () => {
    const { entrants } = await startAll(entry(['handwritten', 'haproxy'].map(peerById), LIMIT))
    for (const { peer, running } of entrants) {
      const statusOf = async (token: string | undefined) =>
        (await fetch(`${running.url}/orders`, { headers: { authorization: `Bearer ${token}` } }))
          .status
      const [greedy, other] = tokens.writers
      const statuses: number[] = []
      for (let i = 0; i <= LIMIT; i++) statuses.push(await statusOf(greedy))
      expect(statuses, peer.title).toEqual([...Array(LIMIT).fill(200), 429])
      expect(await statusOf(other), peer.title).toBe(200)
    }
  })

  test('pass the probes of their table, and are measured', async () => {
    const peers = ['portcullis', 'handwritten', 'haproxy', 'nginx'].map(peerById)
    const { entrants, skipped } = await startAll(entry(peers))
    expect(entrants.length + skipped.length).toBe(peers.length)
    for (const { peer, running } of entrants) await tryOut(peer, running, probes, backends)
    const contestants = entrants.map((entrant) => peerContestant(entrant, tokens.writers))
    const summaries = await measureRounds(contestants, {
      rounds: 1,
      seconds: 0.5,
      pace: { connections: 2 },
      backends,
      onProgress() {},
    })
    for (const { id, title, requests, cpuMicros } of summaries) {
      expect(requests, title).toBeGreaterThan(0)
      // The kernel counts in steps of 10 ms: a native gateway may use less for so few requests.
      if (peerById(id).compiles) expect(cpuMicros, title).toBeGreaterThan(0)
    }
  })
})

test('the handwritten stack uses the settings of the gateway: date, flags, minified', () => {
  const settings = (file: string) =>
    readFileSync(join(ROOT, file), 'utf8').match(/^(?:compat|minify|keep_names).*$/gm)
  expect(settings(HANDWRITTEN_CONFIG)?.toSorted()).toEqual(settings('wrangler.toml')?.toSorted())
})

test('the table has every feature and every probe of each gateway', () => {
  const { headings, rows } = featureTable(PEERS)
  for (const row of rows) expect(row, row[0]).toHaveLength(headings.length)
  for (const cell of rows.flat()) expect(cell).not.toBe('')
})
