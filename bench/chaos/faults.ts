/** Plans faults and applies them over time. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Fault } from '../../dev/fault-proxy/fault.ts'
import { seededRandom } from '../../dev/fault-proxy/random.ts'

/** A response of a proxy in place of the dependency. */
export const said = (
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = { 'Content-Type': 'application/json' },
): Fault => ({ kind: 'answer', status, headers, body })

/** Responses that an Upstash REST server never sends. */
export const RUBBISH: readonly Fault[] = [
  { kind: 'garbage' },
  said(200, ''),
  said(200, '{"result":'),
  said(200, '[]'),
  said(200, 'null'),
  said(200, '[{"result":null}]'),
  said(200, '[{"result":[]}]'),
  said(200, '[{"result":{}},{"result":[]},{"result":"OK"}]'),
  said(200, '<html>it works</html>', { 'Content-Type': 'text/html' }),
  said(429, '{"error":"ERR max requests limit exceeded"}'),
  said(500, '<html>bad gateway</html>', { 'Content-Type': 'text/html' }),
  said(401, '{"error":"WRONGPASS invalid or missing auth token"}'),
  { kind: 'truncate', afterBytes: 120 },
]

/** Times are in seconds since the start of the load. */
export interface PlannedFault<Name extends string> {
  readonly name: Name
  readonly startSeconds: number
  readonly endSeconds: number
}

/** The duration of a plan, and of one fault with the rest around it. */
export interface PlanOptions<Name extends string> {
  readonly seconds: number
  readonly windowSeconds: number
  readonly faults: readonly Name[]
  readonly seed: number
}

/** How one kind of run uses its windows. */
export interface WindowUse<Name extends string> {
  /** Faults that occur three times in each round. */
  readonly often?: readonly Name[]
  /** The active part of a window, as shares of it. The rest shows that the system recovers. */
  readonly active: readonly [from: number, to: number]
  /** Number of windows without a fault at the start. Default 0. */
  readonly quietWindows?: number
  random(): number
}

/** Plans one fault for each window. Each fault occurs once before any occurs again. */
export function planWindows<Name extends string>(
  { seconds, windowSeconds, faults }: Omit<PlanOptions<Name>, 'seed'>,
  { often = [], active, quietWindows = 0, random }: WindowUse<Name>,
): readonly PlannedFault<Name>[] {
  const planned: PlannedFault<Name>[] = []
  let round: Name[] = []
  for (let at = quietWindows * windowSeconds; at + windowSeconds <= seconds; at += windowSeconds) {
    if (round.length === 0) round = shuffled([...faults, ...often, ...often], random)
    const name = round.pop()
    if (name === undefined) break
    const [startSeconds, endSeconds] = active.map((share) => at + windowSeconds * share) as [
      number,
      number,
    ]
    planned.push({ name, startSeconds, endSeconds })
  }
  return planned
}

/** Returns the items in random order. */
export function shuffled<Item>(items: readonly Item[], random: () => number): Item[] {
  return items
    .map((item) => [random(), item] as const)
    .sort(([one], [other]) => one - other)
    .map(([, item]) => item)
}

export { seededRandom }

/** A clock in milliseconds, and the start of the load on it. */
export interface FaultClock {
  readonly startMs: number
  now(): number
  readonly signal: AbortSignal
}

/**
 * Calls `perform` for each planned fault at its time. Skips a fault whose window is over, because an
 * earlier one took longer. Resolves when the plan is complete; rejects if the signal is aborted.
 */
export async function injectFaults<Planned extends PlannedFault<string>>(
  plan: readonly Planned[],
  clock: FaultClock,
  perform: (planned: Planned, index: number) => Promise<void>,
): Promise<void> {
  for (const [index, planned] of plan.entries()) {
    await untilSeconds(planned.startSeconds, clock)
    if (secondsLeft(planned.endSeconds, clock) > 0) await perform(planned, index)
  }
}

/** Sets steps of equal length one after another until the end of a fault, then none. */
export async function applySteps(
  steps: readonly Fault[],
  endSeconds: number,
  clock: FaultClock,
  set: (fault: Fault) => Promise<unknown>,
): Promise<void> {
  const length = secondsLeft(endSeconds, clock)
  try {
    for (const [index, fault] of steps.entries()) {
      await set(fault)
      await untilSeconds(endSeconds - length * (1 - (index + 1) / steps.length), clock)
    }
  } finally {
    await set({ kind: 'none' })
  }
}

/** Returns the seconds until a time of the plan. */
export const secondsLeft = (seconds: number, { startMs, now }: FaultClock): number =>
  seconds - (now() - startMs) / 1_000

/** Resolves at a time of the plan. */
export async function untilSeconds(seconds: number, clock: FaultClock): Promise<void> {
  const ms = Math.max(0, secondsLeft(seconds, clock) * 1_000)
  await sleep(ms, undefined, { signal: clock.signal })
}
