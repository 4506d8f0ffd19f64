/**
 * `portcullis policy replay` predicts what a gateway with another policy decides about the same requests.
 * `REPLAYED_REQUESTS=20000` compares that many.
 */
import { expect, test } from 'vitest'
import { createPredictor, type Grants } from '../../../cli/policy/replay-decide.ts'
import type { AuditEvent } from '../../../src/audit/event.ts'
import { policyTester } from '../../../src/testing/index.ts'
import { usualOrLong } from '../../harness/long.ts'
import { randomPairs, record } from './recorded-requests.ts'

const CI_REQUESTS = usualOrLong(60, 400)
const REQUESTS = Number(process.env.REPLAYED_REQUESTS ?? CI_REQUESTS)
/** No assertion: a bound for the runner. */
const TIMEOUT_MS = 60_000 + REQUESTS * 60
const SEED = Number(process.env.REPLAYED_SEED ?? 18)
const PROPERTY_REQUESTS = Math.max(60, Math.ceil(REQUESTS / 4))

const DECIDED_AGAIN =
  /^(?:not_found|method_not_allowed|missing_token|permission_missing:|ambiguous_path:)/
const RELATION = /^relation_/

type Sort = 'changed' | 'same' | 'unknown'

/** Replays events, compares each prediction with the real event, and counts the predictions. */
async function compared(
  options: Parameters<typeof createPredictor>[0],
  pairs: readonly (readonly [AuditEvent, AuditEvent, Grants | undefined])[],
): Promise<Readonly<Record<Sort, number>>> {
  const predictor = createPredictor(options)
  const counts = { changed: 0, same: 0, unknown: 0 }
  for (const [was, is, grants] of pairs) {
    const predicted = await predictor.predict(was, grants)
    const context = JSON.stringify({ predicted, was, is, grants })
    if (predicted.decision === 'unknown') {
      counts.unknown += 1
      continue
    }
    const isDecidedAgain = DECIDED_AGAIN.test(is.reason) || RELATION.test(is.reason)
    if (predicted.decision === 'allow') expect(isDecidedAgain, context).toBe(false)
    else {
      expect(is.decision, context).toBe('deny')
      if (isDecidedAgain && predicted.reason !== null)
        expect(is.reason, context).toBe(predicted.reason)
    }
    counts[predicted.decision === was.decision ? 'same' : 'changed'] += 1
  }
  return counts
}

const added = (one: Readonly<Record<Sort, number>>, other: Readonly<Record<Sort, number>>) => ({
  changed: one.changed + other.changed,
  same: one.same + other.same,
  unknown: one.unknown + other.unknown,
})

/** Returns the event as earlier versions recorded it. */
const withoutHost = ({ host: _, origin: __, ...event }: AuditEvent): AuditEvent => event

type Known = readonly [name: string, hasRecorded: boolean, hasGrants: boolean, hasHosts: boolean]
/** What a replay has, besides the events. Each run has the first one. */
const KNOWN: readonly [Known, ...Known[]] = [
  ['with the recording policy and the roles of callers', true, true, true],
  ['without the roles of callers', true, false, true],
  ['without the recording policy', false, true, true],
  ['without the hosts of routes', true, true, false],
  ['without hosts and without the recording policy', false, true, false],
]

test.each(usualOrLong<readonly Known[]>(KNOWN.slice(0, 1), KNOWN))(
  'predictions equal the decisions of a gateway, %s',
  async (_, hasRecorded, hasGrants, hasHosts) => {
    const hosts = new Set<string | undefined>()
    let counts = { changed: 0, same: 0, unknown: 0 }
    const isAcceptance = hasRecorded && hasGrants && hasHosts
    const total = isAcceptance ? REQUESTS : PROPERTY_REQUESTS
    for (const { before, after, callers, requests } of randomPairs(total, SEED)) {
      const was = await record(before, requests, callers)
      const is = await record(after, requests, callers)
      expect(is).toHaveLength(was.length)
      const pairs = was.map((event, at) => {
        const grants = hasGrants ? callers.get(event.actor.subject ?? '') : undefined
        hosts.add(event.host)
        return [hasHosts ? event : withoutHost(event), is[at] ?? event, grants] as const
      })
      const recorded = hasRecorded ? before : undefined
      counts = added(counts, await compared({ proposed: after, recorded, policyTester }, pairs))
    }
    if (REQUESTS > CI_REQUESTS) console.info(counts)
    expect(hosts.size).toBeGreaterThan(2)
    if (isAcceptance) {
      expect(counts.changed).toBeGreaterThan(0.02 * total)
      expect(counts.same).toBeGreaterThan(0.1 * total)
    }
  },
  TIMEOUT_MS,
)

test(
  'a replay under the recording policy changes no decision',
  async () => {
    for (const { before, callers, requests } of randomPairs(PROPERTY_REQUESTS, SEED + 1)) {
      const predictor = createPredictor({ proposed: before, recorded: before, policyTester })
      for (const event of await record(before, requests, callers)) {
        for (const grants of [callers.get(event.actor.subject ?? ''), undefined]) {
          const predicted = await predictor.predict(event, grants)
          if (predicted.decision !== 'unknown')
            expect(predicted, JSON.stringify(event)).toEqual({
              decision: event.decision,
              reason: predicted.reason === null ? null : event.reason,
            })
        }
      }
    }
  },
  TIMEOUT_MS,
)
