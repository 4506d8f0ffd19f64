import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Backends, ORIGIN_BODY, startBackends } from '../../bench/backends.ts'
import { CAST } from '../../bench/peers/cast.ts'
import type { Contestant } from '../../bench/peers/contestant.ts'
import { type Entry, startAll } from '../../bench/peers/grounds.ts'
import { HANDWRITTEN_CONFIG } from '../../bench/peers/handwritten/start.ts'
import { type Bout, measureAll, refuseOther } from '../../bench/peers/measure.ts'
import { makeProbes, type Probe, tryOut } from '../../bench/peers/probes.ts'
import { startServer } from '../../bench/peers/server.ts'
import { figuresOf, standingsOf } from '../../bench/peers/standings.ts'
import { featureTable } from '../../bench/peers/tables.ts'
import { type BenchTokens, mintTokens } from '../../bench/tokens.ts'
import { ROOT } from '../../dev/start/settings.ts'

const castById = (id: string) => CAST.find((known) => known.id === id) as Contestant
const handwritten = castById('handwritten')
/** Low enough to be reached. */
const LIMIT = 3

describe('standings', () => {
  const bout = (cpuSeconds: number, requestsPerSecond: number): Bout => ({
    ...{ answers: 1_000, givenUp: 0, requestsPerSecond, p50Ms: 1, p99Ms: 2, cpuSeconds },
    ...{ redisCpuSeconds: 0, redisCalls: 1, auditEvents: 0, loadCores: 0.5, otherCores: 0 },
  })
  const contest = (id: string, rounds: readonly Bout[]) => ({
    contestant: { id, title: id },
    version: '1.0',
    rounds,
  })

  test('rounds are compared with ours next to them, so that a slow minute cancels out', () => {
    const standings = standingsOf(
      [
        contest('ours', [bout(0.2, 2_000), bout(0.4, 1_000), bout(0.2, 2_000)]),
        contest('handwritten', [bout(0.4, 1_000), bout(0.8, 500), bout(0.5, 1_000)]),
      ],
      'ours',
    )
    expect(standings[0]?.oursToIt).toMatchObject({ cpuSeconds: 1, requestsPerSecond: 1 })
    expect(standings[1]?.oursToIt).toMatchObject({ cpuSeconds: 0.5, requestsPerSecond: 2 })
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

  test('without rounds of ours there is nothing to compare', () => {
    expect(() => standingsOf([contest('haproxy', [bout(1, 1)])], 'ours')).toThrow(RangeError)
  })
})

describe('a measurement fails', () => {
  const seen = { answers: 100, counts: { requests: 105, identified: 105, calls: 210 }, strays: 20 }
  const counted = (counts: Partial<typeof seen.counts>) => () =>
    refuseOther(handwritten, { ...seen, counts: { ...seen.counts, ...counts } })

  test('for answers that did not come from the origin', () => {
    expect(counted({})).not.toThrow()
    expect(counted({ requests: 99, identified: 99 })).toThrow('came from the origin')
  })
  test('for an origin that was not told who asks', () => {
    expect(counted({ identified: 99 })).toThrow('told who asks')
  })
  test('for one call too few to Redis, or too many', () => {
    expect(counted({ calls: 199 })).toThrow('calls to Redis')
    expect(counted({ calls: 300 })).toThrow('calls to Redis')
  })
})

describe('gateways', () => {
  const directory = mkdtempSync(join(tmpdir(), 'peers-test-'))
  const closers: (() => Promise<void>)[] = []
  const entry = (cast: readonly Contestant[], limit?: number): Entry => ({
    ...{ cast, backends, tokens, directory, ...(limit !== undefined && { limit }) },
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
    tokens = await mintTokens(join(directory, 'keys.env'))
    probes = await makeProbes(tokens, backends)
  })
  afterAll(async () => {
    for (const close of closers.toReversed()) await close()
    rmSync(directory, { recursive: true, force: true })
  })

  const absent = (optional: boolean): Contestant => ({
    ...castById('haproxy'),
    id: 'absent',
    title: 'Absent',
    optional,
    start: async () => ({
      ...(await startServer({ program: 'no-such-gateway', args: [], port: 9, directory })),
      version: '',
    }),
  })

  test('that are not there are left out, and said to be', async () => {
    expect(await startAll(entry([absent(true)]))).toEqual({
      entrants: [],
      skipped: ['Absent is left out: not on this machine'],
    })
  })

  test('that have to be there fail the run', async () => {
    await expect(startAll(entry([absent(false)]))).rejects.toThrow('not on this machine')
  })

  test('that let a bad token through are not measured', async () => {
    const careless = createServer((_, response) => response.end(ORIGIN_BODY)).listen(0, '127.0.0.1')
    await once(careless, 'listening')
    closers.push(async () => void careless.close())
    const url = `http://127.0.0.1:${(careless.address() as AddressInfo).port}`
    const missing = probes.filter(({ id }) => id === 'missing')
    await expect(tryOut(handwritten, { url }, missing, backends)).rejects.toThrow(
      'by hand answers no token with 200',
    )
  })

  test('count each subject by itself', async () => {
    const { entrants } = await startAll(entry(['handwritten', 'haproxy'].map(castById), LIMIT))
    for (const { contestant, running } of entrants) {
      const statusOf = async (token: string | undefined) =>
        (await fetch(`${running.url}/orders`, { headers: { authorization: `Bearer ${token}` } }))
          .status
      const [greedy, other] = tokens.writers
      const statuses: number[] = []
      for (let i = 0; i <= LIMIT; i++) statuses.push(await statusOf(greedy))
      expect(statuses, contestant.title).toEqual([...Array(LIMIT).fill(200), 429])
      expect(await statusOf(other), contestant.title).toBe(200)
    }
  })

  test('do what the table says of them, and are measured', async () => {
    const cast = ['portcullis', 'handwritten', 'haproxy', 'nginx'].map(castById)
    const { entrants, skipped } = await startAll(entry(cast))
    expect(entrants.length + skipped.length).toBe(cast.length)
    for (const { contestant, running } of entrants)
      await tryOut(contestant, running, probes, backends)
    const bouts = await measureAll({
      ...{ entrants, backends, tokens: tokens.writers, load: { connections: 2 } },
      ...{ warmUpSeconds: 0, seconds: 0.5, rounds: 1, onProgress() {} },
    })
    for (const [{ contestant }, [bout]] of bouts) {
      expect(bout?.answers, contestant.title).toBeGreaterThan(0)
      // The kernel counts in steps of 10 ms: what is native may take less for so few requests.
      if (contestant.compiles) expect(bout?.cpuSeconds, contestant.title).toBeGreaterThan(0)
    }
  })
})

test('what is written by hand runs as the gateway does: date, flags, minified', () => {
  const settings = (file: string) =>
    readFileSync(join(ROOT, file), 'utf8').match(/^(?:compat|minify|keep_names).*$/gm)
  expect(settings(HANDWRITTEN_CONFIG)?.toSorted()).toEqual(settings('wrangler.toml')?.toSorted())
})

test('the table names for each gateway every feature and every probe', () => {
  const { headings, rows } = featureTable(CAST)
  for (const row of rows) expect(row, row[0]).toHaveLength(headings.length)
  for (const cell of rows.flat()) expect(cell).not.toBe('')
})
