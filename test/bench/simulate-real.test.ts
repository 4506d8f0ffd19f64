/** The simulation and real gateways over Redis get the same requests at the same times. */
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FleetOptions } from '../../bench/simulate/experiment.ts'
import { type FleetCounts, runFleet } from '../../bench/simulate/fleet.ts'
import { byMaster } from '../../bench/simulate/size.ts'
import type { Kind } from '../../bench/simulate/traffic.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { AUDIENCE, createKey, ISSUER, mint } from '../harness/issuer.ts'
import { freePort, ROOT, type Running, run } from '../harness/process.ts'
import { startRedisCluster } from '../harness/redis-cluster.ts'
import { directTo, hasRedisServer, startRealServer } from '../harness/resp-server.ts'
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
  ...{ seconds: SECONDS, warmUpSeconds: WARM_UP_SECONDS, maxStalenessMs: 0 },
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

/** A fleet, and how its callers are decided. */
const SYSTEMS = [
  {
    what: 'leased on one Redis',
    fleet: { ...FLEET, lease: LEASE, maxStalenessMs: STALENESS_MS },
  },
  { what: 'strict on three masters', fleet: { ...FLEET, lanes: 12, masters: 3 } },
] as const

/** Starts the servers. `nodes` are the masters in the order of their slots. */
async function startRedis({ masters, lanes }: FleetOptions) {
  if (masters === 1) {
    const server = await startRealServer([])
    const direct = directTo(server.port)
    const close = async () => {
      direct.disconnect()
      await server.close()
    }
    return { url: `redis://127.0.0.1:${server.port}`, nodes: [direct], close }
  }
  const cluster = await startRedisCluster({ masters, replicas: 0 })
  const nodes = cluster.masters.map(({ direct }) => direct)
  return { url: `${cluster.url}/?lanes=${lanes}`, nodes, close: cluster.close }
}

let servers: Awaited<ReturnType<typeof startRedis>>
let origin: TestServer
let gateways: readonly Running[] = []
let ports: readonly number[] = []
const tokens = new Map<string, string>()
let tokenOf: (subject: string) => Promise<string>

describe.runIf(hasRedisServer).each(SYSTEMS)('four gateways, $what', ({ fleet }) => {
  beforeAll(async () => {
    servers = await startRedis(fleet)
    origin = await startHttpServer((incoming, response) => {
      incoming.resume()
      response.end('[]')
    })
    tokens.clear()
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
            REDIS_URL: servers.url,
            REDIS_REPLICAS_ACKED: '0',
            STRICT: fleet.maxStalenessMs === 0 ? '1' : '',
            REDIS_TIMEOUT_MS: '1000',
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
    await servers?.close()
    await origin?.close()
  })

  interface Planned {
    readonly atMs: number
    readonly gateway: number
    readonly subject: string
  }

  /** Sends the simulated requests at their times. Returns what happened after the warm-up. */
  async function replay(planned: readonly Planned[]) {
    for (const { subject } of planned)
      if (!tokens.has(subject)) tokens.set(subject, await tokenOf(subject))
    const agent = new Agent({ keepAlive: true })
    const statuses = new Map<number, number>()
    const send = ({ gateway, subject, atMs }: Planned) =>
      new Promise<void>((resolve, reject) => {
        const sent = request(
          {
            ...{ agent, path: '/orders', host: '127.0.0.1', port: ports[gateway] },
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
        endMicros = (Date.now() + SECONDS * 1000) * 1000
        await Promise.all(servers.nodes.map((direct) => direct.config('RESETSTAT')))
      }
      sending.push(send(each))
    }
    await Promise.all(sending)
    const commands: number[] = []
    let units = 0
    for (const direct of servers.nodes) {
      const found = /cmdstat_evalsha:calls=(\d+)/.exec(await direct.info('commandstats'))
      commands.push(Number(found?.[1]))
      for (const key of await direct.keys('pc:*limit:*'))
        units += unitsIn((await direct.get(key)) ?? '', endMicros)
    }
    agent.destroy()
    return {
      byMaster: commands,
      units,
      admitted: statuses.get(200),
      limited: statuses.get(429),
    }
  }

  function figures({ byKind, byLane, units }: FleetCounts) {
    const sum = (name: 'admitted' | 'limited') =>
      [...byKind.values()].reduce((total, counts) => total + counts[name], 0)
    const ofLanes = byLane.map(
      ({ admissions, renewals, feedReads }) => admissions + renewals + feedReads,
    )
    return {
      byMaster: byMaster(ofLanes, fleet.masters),
      ...{ units, admitted: sum('admitted'), limited: sum('limited') },
    }
  }

  test('commands of each master, units and admissions are within 10 % of the simulated', async () => {
    const planned: Planned[] = []
    const counts = await runFleet({
      ...fleet,
      onRequest: ({ subject }, gateway, atMs) => planned.push({ atMs, gateway, subject }),
    })
    expect(planned.length).toBeGreaterThan(500)
    const simulated = figures(counts)
    const real = await replay(planned)
    const seen = JSON.stringify({ simulated, real })
    const list = (each: typeof simulated | typeof real) => [
      ...each.byMaster,
      each.units,
      each.admitted ?? 0,
    ]
    const expected = list(simulated)
    for (const [at, value] of list(real).entries()) {
      expect(value, seen).toBeGreaterThan((expected[at] ?? 0) * (1 - TOLERANCE))
      expect(value, seen).toBeLessThan((expected[at] ?? 0) * (1 + TOLERANCE))
    }
  })
})
