/**
 * Figures that five other systems publish. They used other machines and languages: for orientation
 * only.
 */

export const PUBLISHED_NOTE =
  'Figures that other systems publish about themselves, from other machines and in other languages: ' +
  'for orientation only. The relevant figure is the ratio to the baseline of the same run.'

export const SYSTEMS = {
  spacetime: 'SpaceTime VR secured HTTP API (Godot)',
  subzero: 'Subzero zero-trust gateway (Python)',
  ramparts: 'Ramparts proxy (Rust)',
  identity: 'Identity V2 (Go)',
  catalytic: 'Catalytic authentication framework (Python)',
} as const
export type SystemId = keyof typeof SYSTEMS

export interface Published {
  readonly system: SystemId
  readonly of: string
  readonly value: string
  /** The reason in one sentence, if no scenario measures a comparable figure. */
  readonly notMeasured?: string
  /** The published values that own figures are compared with. */
  readonly bounds: readonly Bound[]
}

/** A published value. It applies to comparable figures of its unit, and of `key` if it has one. */
export interface Bound {
  readonly unit: 'ms' | 'us' | '1/s' | '%' | 'KB' | 'count'
  readonly at: 'most' | 'least'
  readonly value: number
  /** The end of the figure's id, such as `p99`. */
  readonly key?: string
}

const COMPARED =
  '`npm run bench:compare` is a separate command; it reports a regression from 10 % on.'
const SHORT_SOAK = 'The soak of this project runs for minutes, under faults.'
const WHY = {
  memory: 'An entry of a cache has a fixed weight in bytes, which tests compare with the heap.',
  connections: 'Needs an hour. The soak and `connections` measure shorter loads.',
  scaling:
    'Needs more than the two cores of this machine. `sessions` runs several gateways, and `node` two.',
  hitRatio: 'Follows from the load: with 80 % repeated tokens it is 80 %.',
  coalescing: 'Tests check the exact number.',
  breaker: 'Tests check that it makes no call. Its response costs as much as another refusal.',
} as const

type Row = readonly [of: string, value: string, bounds: readonly Bound[], notMeasured?: string]

const most = (unit: Bound['unit'], value: number, key?: string): Bound => ({
  unit,
  at: 'most',
  value,
  ...(key !== undefined && { key }),
})
const least = (unit: Bound['unit'], value: number): Bound => ({ unit, at: 'least', value })
/** Latencies in milliseconds by percentile. */
const quantiles = (values: Readonly<Record<string, number>>): readonly Bound[] =>
  Object.entries(values).map(([key, value]) => most('ms', value, key))

const ROWS = {
  spacetime: {
    'full-stack': [
      'time added by the full stack',
      '+2.2 ms on a baseline of 2.5 ms (+88 %)',
      [most('ms', 2.2), most('%', 88)],
    ],
    auth: ['time added by authentication', '+0.8 ms', [most('ms', 0.8)]],
    rbac: ['time added by roles', '+0.6 ms', [most('ms', 0.6)]],
    validation: ['time added by validation', '+0.5 ms', [most('ms', 0.5)]],
    limits: ['time added by limits', '+0.3 ms, in memory', [most('ms', 0.3)]],
    audit: ['time added by the audit log', 'under 0.1 ms', [most('ms', 0.1)]],
    target: ['budget for the full stack', '+1.25 ms', [most('ms', 1.25)]],
    sustained: [
      'sustained load',
      'above 1,000 req/s, p99 under 50 ms, p999 under 100 ms',
      quantiles({ p99: 50, p999: 100 }),
    ],
    'offered-100': ['100 req/s offered', 'p99 8.5 ms', quantiles({ p99: 8.5 })],
    'offered-1000': [
      '1,000 req/s offered',
      'p99 24.3 ms, 99.51 % ok',
      [...quantiles({ p99: 24.3 }), least('%', 99.51)],
    ],
    'offered-10000': [
      '10,000 req/s offered',
      '8,802 reached, p99 68.7 ms',
      [...quantiles({ p99: 68.7 }), least('1/s', 8_802)],
    ],
    'offered-50000': ['50,000 req/s offered', '6,308 reached', [least('1/s', 6_308)]],
    soak: ['24 hours at 100 req/s', '99.96 % ok, memory flat', [], SHORT_SOAK],
    'session-memory': ['memory of a session', '1.45 KB', [most('KB', 1.45)], WHY.memory],
    regression: ['threshold of the regression detector', '10 %', [], COMPARED],
  },
  subzero: {
    cached: [
      'cached authentication',
      'p50 2.1 ms, p95 4.3 ms, p99 6.8 ms',
      quantiles({ p50: 2.1, p95: 4.3, p99: 6.8 }),
    ],
    mixed: [
      'authentication, 80 % cached',
      'p50 5.2 ms, p95 156 ms',
      quantiles({ p50: 5.2, p95: 156 }),
    ],
    permissions: [
      'relations over five levels, cached',
      'p50 1.8 ms, p95 3.2 ms, p99 12.4 ms',
      quantiles({ p50: 1.8, p95: 3.2, p99: 12.4 }),
    ],
    'full-stack': [
      'the full stack',
      '237 req/s, p50 8.4 ms, p95 168 ms',
      [...quantiles({ p50: 8.4, p95: 168 }), least('1/s', 237)],
    ],
    connections: [
      '5,000 connections for 60 minutes',
      '99.98 % ok',
      [least('%', 99.98)],
      WHY.connections,
    ],
    throughput: ['throughput of an instance', 'above 10,000 req/s claimed', [least('1/s', 10_000)]],
    scaling: ['eight instances', '98.75 % efficient', [least('%', 98.75)], WHY.scaling],
    'hit-ratio': ['hit ratio of the caches', '97 to 98 %', [least('%', 97)], WHY.hitRatio],
    coalescing: [
      '100 concurrent identical validations',
      '1 call upstream',
      [most('count', 1)],
      WHY.coalescing,
    ],
    'open-breaker': ['response of an open breaker', '1 ms', quantiles({ p50: 1 }), WHY.breaker],
  },
  ramparts: {
    peak: ['peak', '1,330 req/s', [least('1/s', 1_330)]],
    connections: [
      '10 to 300 connections',
      'flat, 100 % ok, 77.7 ms mean at 300',
      [most('ms', 77.7, 'mean'), least('%', 100)],
    ],
    payload: ['payloads of 10 KB', '1,188 req/s', [least('1/s', 1_188)]],
    cached: ['cached validation', '1.3 ms', quantiles({ p50: 1.3 })],
    blocked: ['a refused request', 'under 5 ms', quantiles({ p50: 5 })],
    sustained: [
      '50 connections for 20 s',
      '1,085 req/s, 40.5 % ok',
      [least('1/s', 1_085), least('%', 40.5)],
    ],
  },
  identity: {
    opaque: ['creation of an opaque token', '354 ns', [most('us', 0.354)]],
    sign: ['signing RS256', '1.42 ms (860/s a core)', [most('us', 1_420)]],
    verify: ['verifying RS256', '56.3 us (21,742/s a core)', [most('us', 56.3)]],
    'issue-rate': ['required rate of issuing', '1,000/s', [least('1/s', 1_000)]],
    'validate-rate': ['required rate of validating', '5,000/s', [least('1/s', 5_000)]],
    regression: ['threshold of the regression detector', '20 %', [], COMPARED],
  },
  catalytic: {
    '1000': [
      'log in, verify, log out: 1,000 users',
      '389 req/s, p50 14 ms, p95 180 ms, p99 2,100 ms, 0.95 % failed',
      [...quantiles({ p50: 14, p95: 180, p99: 2_100 }), least('1/s', 389), most('%', 0.95)],
    ],
    '5000': [
      '5,000 users',
      '458 req/s, p50 1.3 s, 3.76 % failed',
      [...quantiles({ p50: 1_300 }), least('1/s', 458), most('%', 3.76)],
    ],
    workers: ['four workers without shared state', '43.85 % failed', [most('%', 43.85)]],
    '10000': ['10,000 users', 'not measured', []],
  },
} as const satisfies Readonly<Record<SystemId, Readonly<Record<string, Row>>>>

type IdsOf<System extends SystemId> = `${System}-${keyof (typeof ROWS)[System] & string}`
export type PublishedId = { [System in SystemId]: IdsOf<System> }[SystemId]

/** All published figures. The figures of scenarios refer to the comparable ones. */
export const PUBLISHED = Object.fromEntries(
  (Object.keys(SYSTEMS) as SystemId[]).flatMap((system) =>
    Object.entries<Row>(ROWS[system]).map(
      ([id, [of, value, bounds, notMeasured]]): [string, Published] => [
        `${system}-${id}`,
        { system, of, value, bounds, ...(notMeasured !== undefined && { notMeasured }) },
      ],
    ),
  ),
) as Readonly<Record<PublishedId, Published>>
