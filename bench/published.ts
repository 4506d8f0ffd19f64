/**
 * Figures that five other systems publish. They used other machines and languages: for orientation
 * only.
 */

export const PUBLISHED_NOTE =
  'Figures that other systems state of themselves, on other machines and in other languages: for ' +
  'orientation only. What counts here is the ratio to the baseline of the same run.'

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
  /** What the figure measures. */
  readonly of: string
  readonly says: string
  /** The reason in one sentence, if nothing comparable is measured here. */
  readonly notMeasured?: string
}

const COMPARED =
  'The detector here is a command of its own, `npm run bench:compare`, which alarms at 10 %.'
const NO_SCENARIO = 'No scenario measures this.'
const TESTED = 'Tests hold this; no scenario measures it.'

/** All published figures. The figures of scenarios reference those that they are compared with. */
export const PUBLISHED = {
  'spacetime-full-stack': {
    system: 'spacetime',
    of: 'what the full stack adds',
    says: '+2.2 ms on a baseline of 2.5 ms (+88 %)',
  },
  'spacetime-auth': { system: 'spacetime', of: 'what authentication adds', says: '+0.8 ms' },
  'spacetime-rbac': { system: 'spacetime', of: 'what roles add', says: '+0.6 ms' },
  'spacetime-validation': { system: 'spacetime', of: 'what validation adds', says: '+0.5 ms' },
  'spacetime-limits': { system: 'spacetime', of: 'what limits add', says: '+0.3 ms, in memory' },
  'spacetime-audit': { system: 'spacetime', of: 'what the audit log adds', says: 'under 0.1 ms' },
  'spacetime-target': {
    system: 'spacetime',
    of: 'its budget for the full stack',
    says: '+1.25 ms',
  },
  'spacetime-sustained': {
    system: 'spacetime',
    of: 'sustained load',
    says: 'above 1,000 req/s, p99 under 50 ms, p999 under 100 ms',
  },
  'spacetime-offered-100': { system: 'spacetime', of: '100 req/s offered', says: 'p99 8.5 ms' },
  'spacetime-offered-1000': {
    system: 'spacetime',
    of: '1,000 req/s offered',
    says: 'p99 24.3 ms, 99.51 % ok',
  },
  'spacetime-offered-10000': {
    system: 'spacetime',
    of: '10,000 req/s offered',
    says: '8,802 reached, p99 68.7 ms',
  },
  'spacetime-offered-50000': {
    system: 'spacetime',
    of: '50,000 req/s offered',
    says: '6,308 reached',
  },
  'spacetime-soak': {
    system: 'spacetime',
    of: '24 hours at 100 req/s',
    says: '99.96 % ok, memory flat',
    notMeasured: 'The soak of this project runs for minutes, under faults.',
  },
  'spacetime-session-memory': {
    system: 'spacetime',
    of: 'memory of a session',
    says: '1.45 KB',
    notMeasured: NO_SCENARIO,
  },
  'spacetime-regression': {
    system: 'spacetime',
    of: 'its regression detector',
    says: 'alarms at 10 %',
    notMeasured: COMPARED,
  },
  'subzero-cached': {
    system: 'subzero',
    of: 'cached authentication',
    says: 'p50 2.1 ms, p95 4.3 ms, p99 6.8 ms',
  },
  'subzero-mixed': {
    system: 'subzero',
    of: 'authentication, 80 % cached',
    says: 'p50 5.2 ms, p95 156 ms',
    notMeasured: NO_SCENARIO,
  },
  'subzero-permissions': {
    system: 'subzero',
    of: 'relations over five levels, cached',
    says: 'p50 1.8 ms, p95 3.2 ms, p99 12.4 ms',
  },
  'subzero-full-stack': {
    system: 'subzero',
    of: 'the full stack',
    says: '237 req/s, p50 8.4 ms, p95 168 ms',
    notMeasured: NO_SCENARIO,
  },
  'subzero-connections': {
    system: 'subzero',
    of: '5,000 connections for 60 minutes',
    says: '99.98 % ok',
    notMeasured: NO_SCENARIO,
  },
  'subzero-throughput': {
    system: 'subzero',
    of: 'throughput of an instance',
    says: 'above 10,000 req/s claimed',
  },
  'subzero-scaling': {
    system: 'subzero',
    of: 'eight instances',
    says: '98.75 % efficient',
    notMeasured: NO_SCENARIO,
  },
  'subzero-hit-ratio': {
    system: 'subzero',
    of: 'hit ratio of its caches',
    says: '97 to 98 %',
    notMeasured: NO_SCENARIO,
  },
  'subzero-coalescing': {
    system: 'subzero',
    of: '100 concurrent identical validations',
    says: '1 call upstream',
    notMeasured: TESTED,
  },
  'subzero-open-breaker': {
    system: 'subzero',
    of: 'answer of an open breaker',
    says: '1 ms',
    notMeasured: TESTED,
  },
  'ramparts-peak': {
    system: 'ramparts',
    of: 'peak',
    says: '1,330 req/s',
    notMeasured: NO_SCENARIO,
  },
  'ramparts-connections': {
    system: 'ramparts',
    of: '10 to 300 connections',
    says: 'flat, 100 % ok, 77.7 ms mean at 300',
    notMeasured: NO_SCENARIO,
  },
  'ramparts-payload': {
    system: 'ramparts',
    of: 'payloads of 10 KB',
    says: '1,188 req/s',
    notMeasured: NO_SCENARIO,
  },
  'ramparts-cached': { system: 'ramparts', of: 'cached validation', says: '1.3 ms' },
  'ramparts-blocked': { system: 'ramparts', of: 'a blocked request', says: 'under 5 ms' },
  'ramparts-sustained': {
    system: 'ramparts',
    of: '50 connections for 20 s',
    says: '1,085 req/s, 40.5 % ok',
    notMeasured: NO_SCENARIO,
  },
  'identity-opaque': { system: 'identity', of: 'making an opaque token', says: '354 ns' },
  'identity-sign': { system: 'identity', of: 'signing RS256', says: '1.42 ms (860/s a core)' },
  'identity-verify': {
    system: 'identity',
    of: 'verifying RS256',
    says: '56.3 us (21,742/s a core)',
  },
  'identity-issue-rate': { system: 'identity', of: 'required of issuing', says: '1,000/s' },
  'identity-validate-rate': { system: 'identity', of: 'required of validating', says: '5,000/s' },
  'identity-regression': {
    system: 'identity',
    of: 'its regression detector',
    says: 'alarms at 20 %',
    notMeasured: COMPARED,
  },
  'catalytic-1000': {
    system: 'catalytic',
    of: 'log in, verify, log out: 1,000 users',
    says: '389 req/s, p50 14 ms, p95 180 ms, p99 2,100 ms, 0.95 % failed',
  },
  'catalytic-5000': {
    system: 'catalytic',
    of: '5,000 users',
    says: '458 req/s, p50 1.3 s, 3.76 % failed',
  },
  'catalytic-workers': {
    system: 'catalytic',
    of: 'four workers without shared state',
    says: '43.85 % failed',
  },
  'catalytic-10000': { system: 'catalytic', of: '10,000 users', says: 'never tried' },
} as const satisfies Readonly<Record<string, Published>>
export type PublishedId = keyof typeof PUBLISHED
