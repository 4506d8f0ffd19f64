/** Revokes callers while several isolates receive their requests, and counts late admissions. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Fault } from '../../../dev/fault-proxy/fault.ts'
import type { FaultProxy } from '../../../dev/fault-proxy/proxy.ts'
import type { Principal } from '../../../src/access/principal.ts'

/** A caller as a token and as a principal. Each kind of isolate uses one of them. */
export interface Caller {
  readonly principal: Principal
  readonly token: string
}

export type Outcome = 'admitted' | 'refused' | 'unavailable'

export interface BoundOptions {
  readonly boundMs: number
  /** The total number of revocations. */
  readonly revocations: number
  /** Callers that are revoked in one round and then watched. Default 10. */
  readonly atOnce?: number
  /** One isolate each. They reach Redis through the proxy. */
  readonly isolates: readonly ((caller: Caller) => Promise<Outcome>)[]
  readonly proxy: FaultProxy
  readonly newCaller: () => Promise<Caller>
  /** Resolves when the revocation is in force. Does not use the proxy. */
  readonly revoke: (caller: Caller, index: number) => Promise<unknown>
}

export interface BoundCounts {
  readonly revoked: number
  /** Responses to requests that were sent at least the bound after the revocation had returned. */
  readonly judged: number
  /** Those of them that were admitted. */
  readonly late: number
  /** Requests that were admitted after the revocation had returned, within the bound. */
  readonly within: number
  /** Requests that were correctly admitted before the revocation. */
  readonly before: number
}

/** The faults of Redis during revocations, in turn. Slow is within the deadline of 250 ms. */
const WEATHERS: readonly Fault[] = [
  { kind: 'none' },
  { kind: 'latency', ms: 60, jitterMs: 60 },
  { kind: 'hang' },
]
const CALLERS_AT_ONCE = 10
const PAUSE_MS = 25
/** How long the caller is watched after the bound. */
const AFTER_MS = 300
const RECOVERY_MS = 20_000

/** Throws an `Error` if an unrevoked caller is refused or Redis does not recover. */
export async function countLate(options: BoundOptions): Promise<BoundCounts> {
  const { boundMs, revocations, isolates, proxy, newCaller, revoke } = options
  const { atOnce = CALLERS_AT_ONCE } = options
  const counts = { revoked: 0, judged: 0, late: 0, within: 0, before: 0 }

  /** Waits until every isolate admits this caller. */
  async function letIn(caller: Caller): Promise<void> {
    const untilMs = Date.now() + RECOVERY_MS
    for (const send of isolates) {
      for (;;) {
        const outcome = await send(caller)
        if (outcome === 'admitted') break
        if (outcome === 'refused') throw new Error('an unrevoked caller was refused')
        if (Date.now() > untilMs) throw new Error('Redis did not recover')
        await sleep(PAUSE_MS)
      }
    }
  }

  /** Sends requests of one caller to one isolate repeatedly, at least once after the bound. */
  async function watch(
    send: (caller: Caller) => Promise<Outcome>,
    caller: Caller,
    returnedMs: () => number | undefined,
  ): Promise<void> {
    for (let judged = 0; ; ) {
      const sentMs = Date.now()
      const revokedMs = returnedMs() ?? Number.POSITIVE_INFINITY
      if (judged > 0 && sentMs >= revokedMs + boundMs + AFTER_MS) return
      const isAdmitted = (await send(caller)) === 'admitted'
      const isLate = sentMs >= revokedMs + boundMs
      if (isLate) judged += 1
      if (isLate) counts.judged += 1
      if (isAdmitted && isLate) counts.late += 1
      else if (isAdmitted && sentMs >= revokedMs) counts.within += 1
      else if (isAdmitted) counts.before += 1
      await sleep(PAUSE_MS)
    }
  }

  for (let round = 0; counts.revoked < revocations; round++) {
    const number = Math.min(atOnce, revocations - counts.revoked)
    const callers = await Promise.all(Array.from({ length: number }, newCaller))
    await proxy.set({ kind: 'none' })
    for (const caller of callers) await letIn(caller)
    const weather = WEATHERS[round % WEATHERS.length] ?? { kind: 'none' }
    // In every second round the fault begins with the revocation, otherwise some time before.
    const [first, then] = round % 2 === 0 ? [0, boundMs / 2] : [boundMs / 2, 0]
    const revokedMs: (number | undefined)[] = []
    const watching = callers.flatMap((caller, index) =>
      isolates.map((send) => watch(send, caller, () => revokedMs[index])),
    )
    await sleep(first)
    await proxy.set(weather)
    await sleep(then)
    for (const [index, caller] of callers.entries()) {
      await revoke(caller, counts.revoked + index)
      revokedMs[index] = Date.now()
    }
    await Promise.all(watching)
    counts.revoked += number
  }
  await proxy.set({ kind: 'none' })
  return counts
}
