/** Runs the fuzz: cases in lanes, control requests beside them, and then the search for what is left over. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { type Backends, startBackends } from '../../bench/stack/backends.ts'
import { type Outcome, open, runCase } from './client.ts'
import { echo, startControls } from './control.ts'
import { type FuzzRuntime, type Gateway, startGateway } from './gateways.ts'
import { wrongIn } from './judge.ts'
import { type Origin, startOrigin } from './origin.ts'
import { type Case, createPlan } from './plan.ts'
import { MAX_IN_FLIGHT } from './policy.ts'

export interface FuzzOptions {
  readonly runtime: FuzzRuntime
  readonly seed: number
  /** Cases, at most. */
  readonly requests: number
  /** Cases begin for this long, at most. */
  readonly minutes: number
  /** Cases at a time. */
  readonly lanes: number
  /** See `createPlan`. */
  readonly largeBytes?: number
  readonly signal?: AbortSignal
  readonly onProgress?: (what: string) => void
}

export interface FuzzResult {
  readonly cases: number
  readonly controls: number
  /** Cases by the status of their response; 0: none. */
  readonly statuses: Readonly<Record<string, number>>
  /** What was wrong. Empty: nothing. */
  readonly wrong: readonly string[]
  readonly seconds: number
}

const CONTROL_LANES = 4
const PROGRESS_EVERY = 1_000
const POLL_MS = 100
/** Enough for idle connections, the hold of a slot and a collection. */
const DRAIN_MS = 40_000
const MAX_WRONG = 50

/** Runs the fuzz. Ends all of its processes. */
export async function fuzz(options: FuzzOptions): Promise<FuzzResult> {
  const backends = await startBackends()
  try {
    const plan = createPlan(options.seed, options.largeBytes)
    const cases = new Map<number, Case>()
    const origin = await startOrigin((id) => cases.get(id))
    const gateway = await startGateway(options.runtime, backends, origin.url)
    const redis = new Redis(backends.redis.directUrl)
    try {
      return await run({ ...options, backends, cases, plan, origin, gateway, redis })
    } finally {
      redis.disconnect()
      await gateway.stop()
      await origin.close()
    }
  } finally {
    await backends.close()
  }
}

interface Rig extends FuzzOptions {
  readonly backends: Backends
  readonly cases: Map<number, Case>
  readonly plan: () => Case
  readonly origin: Origin
  readonly gateway: Gateway
  readonly redis: Redis
}

async function run(rig: Rig): Promise<FuzzResult> {
  const { gateway, requests, minutes, lanes, cases, plan, signal, onProgress } = rig
  const startMs = Date.now()
  const endMs = startMs + minutes * 60_000
  const wrong: string[] = []
  const statuses: Record<string, number> = {}
  let begun = 0
  // The first requests create what stays: connections to Redis, compiled code.
  for (let index = 0; index < 20; index += 1) await echo(gateway.port, `warm up ${index}`)
  await quiet(rig)
  const before = await stateOf(rig)
  const controls = startControls(gateway.port, CONTROL_LANES)

  async function lane(): Promise<void> {
    let socket: Outcome['socket']
    while (begun < requests && Date.now() < endMs && !gateway.hasExited() && !signal?.aborted) {
      begun += 1
      if (begun % PROGRESS_EVERY === 0) onProgress?.(`${begun} cases`)
      const of = plan()
      cases.set(of.id, of)
      const outcome = await runCase(of, socket ?? open(gateway.port))
      socket = outcome.socket
      cases.delete(of.id)
      const { status } = outcome.received
      statuses[status] = (statuses[status] ?? 0) + 1
      const problem = wrongIn(of, outcome)
      if (problem !== undefined) wrong.push(`${JSON.stringify(of)} ${problem}`)
    }
    socket?.destroy()
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  const controlled = await controls.stop()
  wrong.push(...controlled.wrong)
  const seconds = (Date.now() - startMs) / 1_000
  onProgress?.('looking for what is left over')
  if (gateway.hasExited()) wrong.unshift(`the gateway has exited: ${gateway.complaints()}`)
  else wrong.push(...(await leftOver(rig, before)))
  return {
    cases: begun,
    controls: controlled.count,
    statuses,
    wrong: wrong.slice(0, MAX_WRONG),
    seconds,
  }
}

/** What must be the same before and after. */
async function stateOf({ gateway, origin, redis }: Rig): Promise<Record<string, number>> {
  const report = await gateway.report()
  const nowMicros = Date.now() * 1_000
  let slots = 0
  for (const key of await redis.keys('pc:limit:slots-concurrency:*'))
    slots += await redis.zcount(key, nowMicros, '+inf')
  return {
    'connections to the origin': origin.open(),
    'file descriptors': gateway.descriptors(),
    'slots in Redis': slots,
    ...report?.resources,
  }
}

/** Waits until no connection to the origin is open. */
async function quiet({ origin }: Rig): Promise<void> {
  for (let waited = 0; origin.open() > 0 && waited < DRAIN_MS; waited += POLL_MS)
    await sleep(POLL_MS)
}

async function leftOver(rig: Rig, before: Record<string, number>): Promise<string[]> {
  const { gateway, origin } = rig
  const wrong: string[] = []
  const problem = await fullLoad(gateway.port)
  if (problem !== undefined) wrong.push(`requests in flight are left over: ${problem}`)
  let more: string[] = []
  for (let waited = 0; waited < DRAIN_MS; waited += POLL_MS) {
    const after = await stateOf(rig)
    more = Object.entries(after)
      .filter(([name, count]) => count > (before[name] ?? 0))
      .map(([name, count]) => `left over: ${name}: ${before[name] ?? 0} before, ${count} after`)
    if (more.length === 0) break
    await sleep(POLL_MS)
  }
  wrong.push(...more)
  const report = await gateway.report()
  if (report !== undefined) {
    if (report.unhandledRejections > 0)
      wrong.push(`${report.unhandledRejections} unhandled rejections: ${gateway.complaints()}`)
    wrong.push(...report.warnings)
  }
  const complaints = gateway
    .complaints()
    .split('\n')
    .filter((line) => line !== '' && !isAlarm(line))
  if (complaints.length > 0) wrong.push(`stderr: ${complaints.join('\n').slice(0, 2_000)}`)
  wrong.push(...unrecorded(origin.reached(), gateway.audited()))
  const code = await gateway.stop()
  if (code !== undefined && code !== 0) wrong.push(`exit code ${code}`)
  return wrong
}

/** The origin fails on purpose, so that a circuit breaker may open. */
const isAlarm = (line: string): boolean => /^\{"alarm":"\w+","dependency":"origin",/.test(line)

/** Fills the capacity with requests at the same time: a request that still counts would refuse one. */
async function fullLoad(port: number): Promise<string | undefined> {
  const problems = await Promise.all(
    Array.from({ length: MAX_IN_FLIGHT }, (_, index) =>
      echo(port, `full ${index}`).catch((error: Error) => error.message),
    ),
  )
  return problems.find((problem) => problem !== undefined)
}

/** Each request that reached the origin has exactly one event. */
function unrecorded(reached: readonly string[], audited: readonly string[] | undefined): string[] {
  if (audited === undefined) return []
  const events = new Map<string, number>()
  for (const id of audited) events.set(id, (events.get(id) ?? 0) + 1)
  return [...new Set(reached)]
    .filter((id) => events.get(id) !== 1)
    .map((id) => `request ${id} has ${events.get(id) ?? 0} audit events`)
}
