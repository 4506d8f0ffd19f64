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
}

const COMPARED =
  '`npm run bench:compare` is a separate command; it reports a regression from 10 % on.'
const NO_SCENARIO = 'No scenario measures this.'
const TESTED = 'Tests check this; no scenario measures it.'
const SHORT_SOAK = 'The soak of this project runs for minutes, under faults.'

type Row = readonly [of: string, value: string, notMeasured?: string]

const ROWS = {
  spacetime: {
    'full-stack': ['time added by the full stack', '+2.2 ms on a baseline of 2.5 ms (+88 %)'],
    auth: ['time added by authentication', '+0.8 ms'],
    rbac: ['time added by roles', '+0.6 ms'],
    validation: ['time added by validation', '+0.5 ms'],
    limits: ['time added by limits', '+0.3 ms, in memory'],
    audit: ['time added by the audit log', 'under 0.1 ms'],
    target: ['budget for the full stack', '+1.25 ms'],
    sustained: ['sustained load', 'above 1,000 req/s, p99 under 50 ms, p999 under 100 ms'],
    'offered-100': ['100 req/s offered', 'p99 8.5 ms'],
    'offered-1000': ['1,000 req/s offered', 'p99 24.3 ms, 99.51 % ok'],
    'offered-10000': ['10,000 req/s offered', '8,802 reached, p99 68.7 ms'],
    'offered-50000': ['50,000 req/s offered', '6,308 reached'],
    soak: ['24 hours at 100 req/s', '99.96 % ok, memory flat', SHORT_SOAK],
    'session-memory': ['memory of a session', '1.45 KB', NO_SCENARIO],
    regression: ['threshold of the regression detector', '10 %', COMPARED],
  },
  subzero: {
    cached: ['cached authentication', 'p50 2.1 ms, p95 4.3 ms, p99 6.8 ms'],
    mixed: ['authentication, 80 % cached', 'p50 5.2 ms, p95 156 ms', NO_SCENARIO],
    permissions: ['relations over five levels, cached', 'p50 1.8 ms, p95 3.2 ms, p99 12.4 ms'],
    'full-stack': ['the full stack', '237 req/s, p50 8.4 ms, p95 168 ms', NO_SCENARIO],
    connections: ['5,000 connections for 60 minutes', '99.98 % ok', NO_SCENARIO],
    throughput: ['throughput of an instance', 'above 10,000 req/s claimed'],
    scaling: ['eight instances', '98.75 % efficient', NO_SCENARIO],
    'hit-ratio': ['hit ratio of the caches', '97 to 98 %', NO_SCENARIO],
    coalescing: ['100 concurrent identical validations', '1 call upstream', TESTED],
    'open-breaker': ['response of an open breaker', '1 ms', TESTED],
  },
  ramparts: {
    peak: ['peak', '1,330 req/s', NO_SCENARIO],
    connections: ['10 to 300 connections', 'flat, 100 % ok, 77.7 ms mean at 300', NO_SCENARIO],
    payload: ['payloads of 10 KB', '1,188 req/s', NO_SCENARIO],
    cached: ['cached validation', '1.3 ms'],
    blocked: ['a refused request', 'under 5 ms'],
    sustained: ['50 connections for 20 s', '1,085 req/s, 40.5 % ok', NO_SCENARIO],
  },
  identity: {
    opaque: ['creation of an opaque token', '354 ns'],
    sign: ['signing RS256', '1.42 ms (860/s a core)'],
    verify: ['verifying RS256', '56.3 us (21,742/s a core)'],
    'issue-rate': ['required rate of issuing', '1,000/s'],
    'validate-rate': ['required rate of validating', '5,000/s'],
    regression: ['threshold of the regression detector', '20 %', COMPARED],
  },
  catalytic: {
    '1000': [
      'log in, verify, log out: 1,000 users',
      '389 req/s, p50 14 ms, p95 180 ms, p99 2,100 ms, 0.95 % failed',
    ],
    '5000': ['5,000 users', '458 req/s, p50 1.3 s, 3.76 % failed'],
    workers: ['four workers without shared state', '43.85 % failed'],
    '10000': ['10,000 users', 'not measured'],
  },
} as const satisfies Readonly<Record<SystemId, Readonly<Record<string, Row>>>>

type IdsOf<System extends SystemId> = `${System}-${keyof (typeof ROWS)[System] & string}`
export type PublishedId = { [System in SystemId]: IdsOf<System> }[SystemId]

/** All published figures. The figures of scenarios refer to the comparable ones. */
export const PUBLISHED = Object.fromEntries(
  (Object.keys(SYSTEMS) as SystemId[]).flatMap((system) =>
    Object.entries<Row>(ROWS[system]).map(([id, [of, value, notMeasured]]): [string, Published] => [
      `${system}-${id}`,
      { system, of, value, ...(notMeasured !== undefined && { notMeasured }) },
    ]),
  ),
) as Readonly<Record<PublishedId, Published>>
