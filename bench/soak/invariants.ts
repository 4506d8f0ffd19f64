/** The invariants that are checked at the end of a soak. */
import type { Findings } from '../chaos/ledger.ts'
import type { AuditAccount } from './audit.ts'
import { MAX_SLOPE_MB_PER_MINUTE, MIN_MINUTES, type Slope } from './memory.ts'

const SURPRISE =
  'wrangler restarts workerd when a source file changes; see .wrangler/soak-gateway-*.log'

export interface Invariant {
  readonly what: string
  readonly value: string
  readonly aim: string
  /** Undefined: the run was too short to decide. */
  readonly holds: boolean | undefined
  readonly examples: readonly string[]
}

export interface Evidence {
  readonly requests: number
  readonly unsettled: number
  readonly findings: Findings
  readonly overruns: readonly string[]
  readonly audit: AuditAccount
  /** Number of gateway processes that ended unexpectedly. */
  readonly surprises: number
  /** Slope of the heap of each gateway's isolate. */
  readonly slopes: readonly (Slope | undefined)[]
}

export function invariantsOf(evidence: Evidence): readonly Invariant[] {
  const { findings, audit, slopes } = evidence
  const { counts } = findings
  const none = (what: string, count: number, examples: readonly string[] = []): Invariant => ({
    what,
    value: String(count),
    aim: '0',
    holds: count === 0,
    examples,
  })
  return [
    {
      ...{
        what: 'requests with a response',
        value: String(audit.answered),
        aim: '> 0',
        examples: [],
      },
      holds: audit.answered > 0,
    },
    none('wrong accepts', counts.wrongAccepts, findings.wrongAccepts),
    none('limits exceeded at the origin', evidence.overruns.length, evidence.overruns),
    none(
      'unexplained 5xx, incomplete or missing responses',
      counts.unexplained,
      findings.unexplained,
    ),
    none('good requests refused', counts.wrongRefusals, findings.wrongRefusals),
    none('POSTs executed twice', counts.repeats, findings.repeats),
    none('requests in progress at the end', evidence.unsettled),
    none('gateways that ended unexpectedly', evidence.surprises, [SURPRISE]),
    none('lost audit events', audit.lost, audit.lostExamples),
    none('duplicate or different audit events', audit.doubled + audit.different),
    ...slopes.map((slope, gateway) => memoryInvariant(slope, gateway)),
  ]
}

function memoryInvariant(slope: Slope | undefined, gateway: number): Invariant {
  const long = slope?.isWarm && slope.minutes >= MIN_MINUTES
  return {
    what: `heap of gateway ${gateway + 1}, MB/min`,
    value: slope === undefined ? '-' : `${slope.mbPerMinute} +- ${slope.plusMinus}`,
    aim: `<= ${MAX_SLOPE_MB_PER_MINUTE}`,
    // A slope counts as flat if its interval includes a flat line.
    holds: long ? slope.mbPerMinute - slope.plusMinus <= MAX_SLOPE_MB_PER_MINUTE : undefined,
    examples: [],
  }
}

/** Reports whether no invariant is violated. */
export const allHold = (invariants: readonly Invariant[]): boolean =>
  invariants.every(({ holds }) => holds !== false)

/** The limit of the shipped policy. */
const LIMIT = 100
const WINDOW_MS = 60_000
/** Requests admitted in one window may reach the origin this late in the next window. */
const LATE_MS = 3_000

/**
 * Creates the check. It uses the limiter's own windows, which start with each minute of the clock:
 * none may admit more than the limit. (In a window with another start, up to 1.85 times the limit
 * may pass, see docs/threat-model.md.)
 */
export function createLimitWatch() {
  const counts = new Map<string, number>()
  return {
    arrive(subject: string, timeMs: number): void {
      if (timeMs % WINDOW_MS < LATE_MS) return
      const window = `${subject} in minute ${Math.floor(timeMs / WINDOW_MS)}`
      counts.set(window, (counts.get(window) ?? 0) + 1)
    },
    /** Returns the windows with more requests than the limit. */
    overruns: () =>
      [...counts]
        .filter(([, count]) => count > LIMIT)
        .map(([window, count]) => `${count}: ${window}`),
  }
}
