/** One call for a hundred that ask the same at once, and none where it would be in vain. */
import {
  measureCoalescing,
  measureColdKeySets,
  measureOpenBreaker,
  prepareSingleFlights,
} from '../requests/single-flights.ts'
import type { Scenario } from '../scenario.ts'

const EFFORTS = {
  quick: { rounds: 3, coldIsolates: 3, breakerSeconds: 2 },
  full: { rounds: 30, coldIsolates: 12, breakerSeconds: 20 },
} as const

export const singleFlight: Scenario = {
  id: 'single-flight',
  title: 'Single flight and open breaker',
  measures:
    'A hundred concurrent identical requests on a route that coalesces, a hundred at an isolate ' +
    'that has no key set yet, and the answer of an open breaker, 1 connection.',
  answers: ['subzero-coalescing', 'subzero-open-breaker'],
  asserts: [
    'A hundred coalesced requests, all admitted before the origin answers, are one call; the same ' +
      'hundred on a route that does not coalesce are a hundred.',
    'A hundred requests with tokens of an issuer whose keys are not there yet are one download.',
    'Every one of these is answered 200 with the origin’s body.',
    'For 200 ms after each failed probe an open breaker lets no connection to the origin through.',
  ],
  runtimes: ['workerd'],
  seconds: { quick: 9, full: 45 },

  async run(context) {
    const effort = EFFORTS[context.effort]
    const prepared = await prepareSingleFlights(context, effort.coldIsolates)
    context.onProgress('a hundred identical requests')
    const coalescing = await measureCoalescing(prepared, effort.rounds)
    context.onProgress('a hundred requests at a cold key set')
    const coldKeySets = await measureColdKeySets(prepared)
    context.onProgress('an open breaker')
    const breaker = await measureOpenBreaker(prepared, effort.breakerSeconds)
    await prepared.close()
    return {
      figures: [
        {
          ...{ id: 'coalesced-calls', title: 'calls for 100 identical requests', unit: 'count' },
          ...{ value: coalescing.calls, beside: ['subzero-coalescing'] },
        },
        {
          ...{ id: 'uncoalesced-calls', title: 'the same without `coalesce`', unit: 'count' },
          value: coalescing.callsWithout,
        },
        {
          ...{
            id: 'downloads',
            title: 'downloads for 100 requests at a cold key set',
            unit: 'count',
          },
          ...{ value: coldKeySets.downloads, beside: ['subzero-coalescing'] },
        },
        {
          ...{ id: 'open-breaker-p50', title: 'answer of an open breaker: p50', unit: 'ms' },
          ...{ value: breaker.p50Ms, beside: ['subzero-open-breaker'] },
        },
        {
          ...{ id: 'open-breaker-p99', title: 'answer of an open breaker: p99', unit: 'ms' },
          ...{ value: breaker.p99Ms, beside: ['subzero-open-breaker'] },
        },
      ],
      checks: [
        {
          what: 'calls to the origin for coalesced requests',
          seen: `${effort.rounds * coalescing.calls} for ${effort.rounds} times 100`,
        },
        {
          what: 'downloads of a key set',
          seen: `${effort.coldIsolates * coldKeySets.downloads} for ${effort.coldIsolates} isolates`,
        },
        {
          what: 'connections to the origin in the 200 ms after a failed probe',
          seen: `0, while ${breaker.guarded.toLocaleString('en')} requests were answered`,
        },
      ],
      notes: [
        'A call is shared within one isolate, and each isolate has a breaker and key sets of its own.',
        `The breaker was probed ${breaker.probes} times in ${effort.breakerSeconds} s, by one request ` +
          'each time, whose answer is not in its latencies.',
        'A request behind an open breaker has been verified and admitted, with its call to Redis, ' +
          'as any other.',
      ],
    }
  },
}
