/** The simulation and real gateways over Redis get the same requests at the same times. */
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FleetCounts, FleetOptions } from '../../bench/simulate/experiment.ts'
import { runFleet } from '../../bench/simulate/fleet.ts'
import type { Kind } from '../../bench/simulate/traffic.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { AUDIENCE, createKey, ISSUER, mint } from '../harness/issuer.ts'
import { freePort, ROOT, type Running, run } from '../harness/process.ts'
import {
  directTo,
  hasRedisServer,
  type RealServer,
  startRealServer,
} from '../harness/resp-server.ts'
import { LEASE, LIMIT, STALENESS_MS } from './simulate-terms.ts'

const NODE = join(ROOT, 'node_modules/node/bin/node')
const GATEWAYS = 4
const WARM_UP_SECONDS = 2
const SECONDS = 4
/** How far a count may be from the simulated one. */
const TOLERANCE = 0.1

const KINDS: readonly Kind[] = [
  { id: 'services', title: 'services', share: 0.6, rate: 24, connections: 2 },
  { id: 'people', title: 'people', share: 0.1, rate: 0.5, connections: 1 },
  { id: 'greedy', title: 'services above their limit', share: 0.3, rate: 60, connections: 2 },
]

const FLEET: FleetOptions = {
  ...{ gateways: GATEWAYS, processes: 1, lanes: 1, masters: 1, seed: 7, latencyMs: 0.5 },
  ...{ rate: 200, sampleRate: 200, kinds: KINDS, outage: undefined, revokes: false },
  ...{ seconds: SECONDS, warmUpSeconds: WARM_UP_SECONDS, maxStalenessMs: STALENESS_MS },
  limits: [LIMIT],
  lease: undefined,
}

/** Returns the units of a window that count at a time: see `exact-window.lua`. */
function unitsIn(text: string, atMicros: number): number {
  let units = 0
  for (const [, time, count] of text.slice(10).matchAll(/(\d{16})(\d{10})/g))
    if (Number(time) + LIMIT.windowSeconds * 1e6 > atMicros) units += Number(count)
  return units
}

let server: RealServer
let direct: Redis
let origin: TestServer
let gateways: readonly Running[] = []
let ports: readonly number[] = []
const tokens = new Map<string, string>()
let tokenOf: (subject: string) => Promise<string>

describe.runIf(hasRedisServer)('four gateways on one Redis', () => {
  beforeAll(async () => {
    server = await startRealServer([])
    direct = directTo(server.port)
    origin = await startHttpServer((incoming, response) => {
      incoming.resume()
      response.end('[]')
    })
    const key = await createKey('fleet')
    tokenOf = (sub) => mint(key, { claims: { sub } })
    ports = await Promise.all(Array.from({ length: GATEWAYS }, freePort))
    const issuer = { issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [key.publicJwk] } }
    gateways = await Promise.all(
      ports.map((port) =>
        run(
          [NODE, 'test/runtimes/node/process.ts'],
          {
            POLICY: join(ROOT, 'test/bench/simulate-policy.ts'),
            REDIS_URL: `redis://127.0.0.1:${server.port}`,
            REDIS_TIMEOUT_MS: '5000',
            PUBLIC_URL: AUDIENCE,
            ORIGIN_URL: origin.url,
            ISSUERS: JSON.stringify([issuer]),
            PORT: String(port),
          },
          'ready on',
        ),
      ),
    )
  })
  afterAll(async () => {
    await Promise.all(gateways.map((gateway) => gateway.stop()))
    direct?.disconnect()
    await server?.close()
    await origin?.close()
  })

  interface Planned {
    readonly atMs: number
    readonly gateway: number
    readonly subject: string
  }

  /** Sends the simulated requests at their times. Returns what happened after the warm-up. */
  async function replay(path: string, planned: readonly Planned[]) {
    for (const { subject } of planned)
      if (!tokens.has(subject)) tokens.set(subject, await tokenOf(subject))
    await direct.flushall()
    const agent = new Agent({ keepAlive: true })
    const statuses = new Map<number, number>()
    const send = ({ gateway, subject, atMs }: Planned) =>
      new Promise<void>((resolve, reject) => {
        const sent = request(
          {
            ...{ agent, path, host: '127.0.0.1', port: ports[gateway] },
            headers: { authorization: `Bearer ${tokens.get(subject)}` },
          },
          (response) => {
            const status = response.statusCode ?? 0
            if (atMs >= WARM_UP_SECONDS * 1000)
              statuses.set(status, (statuses.get(status) ?? 0) + 1)
            response.resume().on('end', resolve)
          },
        )
        sent.on('error', reject).end()
      })
    const sending: Promise<void>[] = []
    const startedMs = performance.now()
    let isCounting = false
    let endMicros = 0
    for (const each of planned) {
      const waitMs = startedMs + each.atMs - performance.now()
      if (waitMs > 0) await sleep(waitMs)
      if (!isCounting && each.atMs >= WARM_UP_SECONDS * 1000) {
        isCounting = true
        const [seconds, micros] = await direct.time()
        endMicros = Number(seconds) * 1e6 + Number(micros) + SECONDS * 1e6
        await direct.config('RESETSTAT')
      }
      sending.push(send(each))
    }
    await Promise.all(sending)
    const calls = /cmdstat_evalsha:calls=(\d+)/.exec(await direct.info('commandstats'))?.[1]
    const windows = await direct.keys('pc:limit:*')
    const texts = windows.length === 0 ? [] : await direct.mget(windows)
    const units = texts.reduce((sum, text) => sum + unitsIn(text ?? '', endMicros), 0)
    agent.destroy()
    return {
      commands: Number(calls),
      units,
      admitted: statuses.get(200),
      limited: statuses.get(429),
    }
  }

  async function both(path: string, options: Partial<FleetOptions>) {
    const planned: Planned[] = []
    const counts = await runFleet({
      ...{ ...FLEET, ...options },
      onRequest: ({ subject }, gateway, atMs) => planned.push({ atMs, gateway, subject }),
    })
    return { simulated: figures(counts), real: await replay(path, planned), planned }
  }

  function figures({ byKind, commands, units }: FleetCounts) {
    const sum = (name: 'admitted' | 'limited') =>
      [...byKind.values()].reduce((total, counts) => total + counts[name], 0)
    const { admissions, renewals, feedReads } = commands
    return {
      commands: admissions + renewals + feedReads,
      ...{ units, admitted: sum('admitted'), limited: sum('limited') },
    }
  }

  test.each([
    { path: 'counted', options: {} },
    { path: 'leased', options: { lease: LEASE } },
  ] as const)(
    '$path requests: commands, units and answers are within 10 % of the simulated',
    async ({ path, options }) => {
      const { simulated, real, planned } = await both(`/${path}`, options)
      expect(planned.length).toBeGreaterThan(500)
      const seen = JSON.stringify({ simulated, real })
      for (const name of ['commands', 'units', 'admitted'] as const) {
        expect(real[name], seen).toBeGreaterThan(simulated[name] * (1 - TOLERANCE))
        expect(real[name], seen).toBeLessThan(simulated[name] * (1 + TOLERANCE))
      }
    },
  )
})
