/**
 * Ends open responses and WebSockets when the token of their caller expires or its login is too old for the
 * route, and soon after the caller is no longer admitted.
 */

import type { Principal } from '../access/principal.ts'
import { Denied, logKind, type ProblemError, Unavailable } from '../errors.ts'
import { STEP_MS } from '../isolate/period.ts'
import type { Denial } from '../problems/reasons.ts'
import {
  findEnd,
  type OpenStream,
  type StreamCaller,
  type StreamGroup,
  type StreamRequest,
  WatchedStream,
} from './watched-stream.ts'

export type { OpenStream, StreamCaller, StreamTerms } from './watched-stream.ts'

export interface OpenStreams {
  /** Adds the stream of a request that is admitted now. */
  add(request: StreamRequest): OpenStream
}

/** Why each caller is no longer admitted. Undefined: it is. */
type Verdicts = readonly (Denial | undefined)[]

export interface OpenStreamsOptions {
  /** Decides about many callers at once. Rejects with `Unavailable` if it cannot. Charges no limit. */
  readonly recheck: (callers: readonly StreamCaller[]) => Promise<Verdicts>
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /**
   * Whether all requests share one timer and each other's I/O. Default false: on Workers, both end with
   * their request, so each stream has a timer, and only data is shared.
   */
  readonly isShared?: boolean | undefined
}

/** Callers of one call. A call that fails or is late ends only their streams. */
const SLICE = 500
/** Relations that are checked at once. */
const CHECKS_AT_ONCE = 16
/** A check includes the callers that are due within this part of their interval. */
const JOINS_FROM_PART = 3 / 4
const TICK_MS = 100
/** Interval at which a stream looks for the result of a check that another request makes. */
const POLL_MS = 100
/** After this time, the request that makes the check has ended, and another one takes over. */
const LEASE_MS = 3_000
const RETRY_MS = 500
/** A download that may finish ends if no byte passes for this time. */
const PROGRESS_MS = 5_000
const FORGOTTEN_AFTER_INTERVALS = 3 / 2
/** Longest delay that `setTimeout` accepts, in milliseconds. */
const MAX_DELAY_MS = 2_147_483_647

/**
 * Creates the watch over all open streams of an isolate. A stream that ends before its first check
 * costs no call and no group. Then one call decides about 500 callers that are due, so the number of
 * calls does not depend on the number of streams.
 */
export function createOpenStreams({
  recheck,
  now: wallClock,
  isShared = false,
}: OpenStreamsOptions): OpenStreams {
  // A set of so many objects that live so shortly cost a fifth of the time of a request.
  const open: WatchedStream[] = []
  const groups = new Set<StreamGroup>()
  const ofPrincipal = new WeakMap<Principal, StreamGroup[]>()
  let ticking: ReturnType<typeof setInterval> | undefined
  let busyUntilMs = 0
  let lastMs = 0
  let aheadMs = 0

  /**
   * The clock of all periods. If the clock of the machine was set back, it continues at its last time, or at
   * `dueMs`. Otherwise each check would wait until the old time is reached again.
   */
  function now(dueMs = 0): number {
    const nowMs = wallClock()
    const lostMs = Math.max(dueMs, lastMs) - nowMs - aheadMs
    // Sums of smaller steps would end streams early.
    if (lostMs > STEP_MS) aheadMs += lostMs
    lastMs = nowMs + aheadMs
    return lastMs
  }

  function findGroup({ request, admittedMs }: WatchedStream): StreamGroup {
    const { principal, address, readmit } = request
    const relation = readmit?.relation
    const known = ofPrincipal.get(principal) ?? []
    // A caller that was admitted after a refusal has another group.
    const current = known.filter((group) => groups.has(group))
    let group = current.find((one) => one.address === address && one.relation === relation)
    if (group === undefined) {
      group = {
        principal,
        address,
        relation,
        check: undefined,
        checkedMs: admittedMs,
        triedMs: Number.NEGATIVE_INFINITY,
        isDue: false,
        intervalMs: Number.POSITIVE_INFINITY,
        seenMs: admittedMs,
        failingSinceMs: undefined,
        failure: undefined,
        refusal: undefined,
      }
      groups.add(group)
      ofPrincipal.set(principal, [...current, group])
    }
    return group
  }

  /** Ends the stream if it must end. Otherwise sets the time of its next visit. */
  function visit(stream: WatchedStream, nowMs: number): void {
    const { request, group, admittedMs, intervalMs, endMs } = stream
    const end = findEnd(stream, nowMs)
    if (end !== undefined) {
      const untilMs = stream.progressUntilMs(nowMs, PROGRESS_MS)
      if (nowMs < untilMs) stream.nextMs = untilMs
      else stream.end(end)
      return
    }
    if (intervalMs === 0) {
      stream.nextMs = endMs
      return
    }
    stream.group = group ?? findGroup(stream)
    const own = stream.group
    if (own.refusal === undefined) groups.add(own)
    own.seenMs = nowMs
    own.intervalMs = Math.min(own.intervalMs, intervalMs)
    if (request.readmit !== undefined) own.check = request.readmit.check
    const dueMs = Math.max(admittedMs, own.checkedMs) + intervalMs
    own.isDue ||= nowMs >= dueMs
    const pollMs = isShared ? TICK_MS : POLL_MS
    stream.nextMs = Math.min(endMs, nowMs >= dueMs ? nowMs + pollMs : dueMs)
  }

  /** Checks the groups that are due, unless another request does. Never rejects. */
  async function examine(by?: WatchedStream): Promise<void> {
    const sentMs = now()
    if (sentMs < busyUntilMs) return
    const due: StreamGroup[] = []
    for (const group of groups) {
      // Its streams have ended. A stream that is visited later adds its group again.
      if (sentMs - group.seenMs > FORGOTTEN_AFTER_INTERVALS * group.intervalMs + POLL_MS)
        groups.delete(group)
      else if (isReady(group, sentMs)) due.push(group)
    }
    // A check with a relation belongs to the request of its stream.
    const mine = due.filter(({ relation }) => relation === undefined || isShared)
    if (by?.group?.relation !== undefined && due.includes(by.group) && !isShared)
      mine.push(by.group)
    if (!mine.some(({ isDue }) => isDue)) return
    busyUntilMs = sentMs + LEASE_MS
    for (const group of mine) group.triedMs = sentMs
    const alike = mine.filter(({ relation }) => relation === undefined)
    const others = mine.filter(({ relation }) => relation !== undefined)
    const check = async (groups: readonly StreamGroup[], checking: () => Promise<Verdicts>) =>
      settle(groups, await catchProblem(checking()), sentMs)
    await Promise.all([
      ...sliceGroups(alike).map((slice) => check(slice, () => recheck(slice))),
      inTurns(others, (group) =>
        check([group], async () => {
          await (group.check ?? unchecked)()
          return [undefined]
        }),
      ),
    ])
    if (busyUntilMs === sentMs + LEASE_MS) busyUntilMs = 0
  }

  function settle(
    checked: readonly StreamGroup[],
    found: Verdicts | ProblemError,
    sentMs: number,
  ): void {
    for (const [index, group] of checked.entries()) {
      const failed = Array.isArray(found) ? undefined : (found as ProblemError)
      if (failed instanceof Denied) refuse(group, failed)
      else if (failed !== undefined) {
        group.failingSinceMs ??= sentMs
        group.failure = failed
      } else {
        group.isDue = false
        group.checkedMs = Math.max(group.checkedMs, sentMs)
        group.failingSinceMs = undefined
        group.failure = undefined
        const denial = (found as Verdicts)[index]
        if (denial !== undefined) refuse(group, new Denied(denial))
      }
    }
  }

  function refuse(group: StreamGroup, error: Denied): void {
    group.refusal = error
    groups.delete(group)
  }

  function tick(): void {
    const nowMs = now()
    let isChecked = false
    for (let at = 0; at < open.length; ) {
      const stream = open[at]
      if (stream !== undefined && nowMs >= stream.nextMs) {
        visit(stream, nowMs)
        isChecked = true
      }
      // The last stream takes the place of one that has ended.
      if (open[at] === stream) at += 1
    }
    if (isChecked) void examine()
    if (open.length > 0) return
    clearInterval(ticking)
    ticking = undefined
    groups.clear()
  }

  function start(stream: WatchedStream): void {
    if (isShared) {
      stream.place ??= open.push(stream) - 1
      if (ticking !== undefined) return
      ticking = setInterval(tick, TICK_MS)
      ticking.unref?.()
      return
    }
    const startMs = now()
    const delayMs = Math.min(Math.max(stream.nextMs - startMs, 0), MAX_DELAY_MS)
    stream.timer = setTimeout(() => {
      visit(stream, now(startMs + delayMs))
      if (stream.isOpen) start(stream)
      if (stream.group?.isDue)
        void examine(stream).then(() => stream.isOpen && visit(stream, now()))
    }, delayMs)
  }

  function stop(stream: WatchedStream): void {
    clearTimeout(stream.timer)
    const { place } = stream
    // A stream that nothing ends was never started.
    if (place === undefined) return
    stream.place = undefined
    const last = open.pop()
    if (last === undefined || last === stream) return
    open[place] = last
    last.place = place
  }

  const timers = { start, stop, now }
  return { add: (request) => new WatchedStream(request, now(), aheadMs, timers) }
}

function sliceGroups(groups: readonly StreamGroup[]): readonly (readonly StreamGroup[])[] {
  const slices: (readonly StreamGroup[])[] = []
  for (let start = 0; start < groups.length; start += SLICE)
    slices.push(groups.slice(start, start + SLICE))
  return slices
}

/** Runs a check of each group, a few at once. */
async function inTurns(
  groups: readonly StreamGroup[],
  check: (group: StreamGroup) => Promise<void>,
): Promise<void> {
  const waiting = groups.values()
  const oneByOne = async () => {
    for (const group of waiting) await check(group)
  }
  await Promise.all(Array.from({ length: CHECKS_AT_ONCE }, oneByOne))
}

function isReady(group: StreamGroup, nowMs: number): boolean {
  if (nowMs - group.triedMs < Math.min(RETRY_MS, group.intervalMs)) return false
  return group.isDue || nowMs - group.checkedMs >= group.intervalMs * JOINS_FROM_PART
}

/** Of a group with a relation before its first visit, which does not happen. */
const unchecked = (): Promise<void> => Promise.reject(new Unavailable('gateway', 'malformed'))

/** Returns an error in place of a rejection. An error of this program is a failed check as well. */
async function catchProblem(checking: Promise<Verdicts>): Promise<Verdicts | ProblemError> {
  try {
    return await checking
  } catch (error) {
    if (error instanceof Denied || error instanceof Unavailable) return error
    logKind('open streams', error)
    return new Unavailable('gateway', 'malformed', { cause: error })
  }
}
