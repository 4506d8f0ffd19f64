/**
 * Random events at an isolate, a feed and a server, and the property that must hold for all of
 * them.
 */
import fc from 'fast-check'
import type { FeedMark, RevocationFeed } from '../../../src/access/revocation/feed.ts'
import { createFeedModel, type FeedModelOptions } from './feed-model.ts'

export const BOUND_MS = 100
const KEYS = ['a', 'b', 'c', 'shared']
/** The keys of each caller. */
const KEYS_OF = [
  ['a', 'shared'],
  ['b', 'shared'],
  ['c', 'shared'],
] as const

/** A call: when the script runs and when the reply arrives, after the call was sent. */
interface Call {
  readonly kind: 'check' | 'refresh'
  readonly caller: number
  readonly runsMs: number
  readonly backMs: number
  readonly isLost: boolean
}
type Happening =
  | Call
  | { readonly kind: 'write'; readonly key: string }
  | { readonly kind: 'lose' }
  | { readonly kind: 'save' }
  | { readonly kind: 'failOver' }

export interface Step {
  readonly afterMs: number
  readonly happens: Happening
}

const delayMs = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: BOUND_MS * 2 }))
const call = (kind: Call['kind']) =>
  fc.record({
    kind: fc.constant(kind),
    caller: fc.nat(KEYS_OF.length - 1),
    runsMs: delayMs,
    backMs: delayMs,
    isLost: fc.oneof({ weight: 9, arbitrary: fc.constant(false) }, fc.constant(true)),
  })
const event = (kind: 'lose' | 'save' | 'failOver') => fc.constant<Happening>({ kind })

/** Overlapping, slow and lost calls, concurrent writers, and an occasional failover. */
export const feedSchedules = fc.array(
  fc.record<Step>({
    afterMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: BOUND_MS / 4 })),
    happens: fc.oneof<fc.MaybeWeightedArbitrary<Happening>[]>(
      { weight: 8, arbitrary: call('check') },
      { weight: 8, arbitrary: call('refresh') },
      {
        weight: 4,
        arbitrary: fc.record({
          kind: fc.constant('write' as const),
          key: fc.constantFrom(...KEYS),
        }),
      },
      { weight: 1, arbitrary: event('lose') },
      { weight: 1, arbitrary: event('save') },
      { weight: 1, arbitrary: event('failOver') },
    ),
  }),
  { minLength: 20, maxLength: 60 },
)

export interface Lived {
  /**
   * Callers that the view admitted although a key of theirs was revoked for longer than the bound.
   */
  readonly wrong: number
  /** Callers that the view admitted. */
  readonly held: number
}

/** Runs a schedule and queries the view for every caller after each event. */
export function live(
  steps: readonly Step[],
  feed: RevocationFeed,
  options: FeedModelOptions = { most: 3, entries: 6 },
): Lived {
  const server = createFeedModel(options)
  const marks = new Map<number, FeedMark>()
  const later: { readonly atMs: number; readonly act: (nowMs: number) => void }[] = []
  let [wrong, held] = [0, 0]

  function look(nowMs: number): void {
    for (const [caller, keys] of KEYS_OF.entries()) {
      if (!feed.holds(marks.get(caller), keys, nowMs)) continue
      held += 1
      const isRevoked = (key: string) =>
        (server.revokedSinceMs(key) ?? Number.POSITIVE_INFINITY) <= nowMs - BOUND_MS
      if (keys.some(isRevoked)) wrong += 1
    }
  }

  function send({ kind, caller, runsMs, backMs, isLost }: Call, sentMs: number): void {
    const since = feed.cursor
    const run = (nowMs: number) => {
      const reply = server.since(since)
      const isClean = !KEYS_OF[caller]?.some((key) => server.revokedSinceMs(key) !== undefined)
      const take = () => {
        const mark = feed.update(reply, sentMs)
        if (kind === 'refresh') return
        if (isClean && mark !== undefined) marks.set(caller, mark)
        else marks.delete(caller)
      }
      if (!isLost) later.push({ atMs: nowMs + backMs, act: take })
    }
    later.push({ atMs: sentMs + runsMs, act: run })
  }

  function pass(untilMs: number): void {
    for (;;) {
      const due = later.filter(({ atMs }) => atMs <= untilMs)
      const next = due.reduce<(typeof due)[number] | undefined>(
        (first, item) => (first === undefined || item.atMs < first.atMs ? item : first),
        undefined,
      )
      if (next === undefined) return
      later.splice(later.indexOf(next), 1)
      look(next.atMs)
      next.act(next.atMs)
      look(next.atMs)
    }
  }

  let nowMs = 1_000
  for (const { afterMs, happens } of steps) {
    nowMs += afterMs
    pass(nowMs)
    look(nowMs)
    if (happens.kind === 'write') server.write(happens.key, nowMs)
    else if (happens.kind === 'lose') server.lose()
    else if (happens.kind === 'save') server.save()
    else if (happens.kind === 'failOver') server.failOver(nowMs)
    else send(happens, nowMs)
    look(nowMs)
  }
  pass(nowMs + 4 * BOUND_MS)
  return { wrong, held }
}
