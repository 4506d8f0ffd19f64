/** The result of a recorded run, and how it is written and printed. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { HistoryEvent } from '../chaos/history.ts'
import { rounded } from '../measure/statistics.ts'
import type { surroundings } from '../surroundings.ts'
import { table } from '../text.ts'
import type { OverloadFigures } from './bursts.ts'
import type { Verdict } from './check.ts'
import type { RevocationCounts } from './check-revocations.ts'
import type { WindowFinding } from './check-windows.ts'
import type { FaultName } from './faults.ts'
import type { RecordOptions } from './options.ts'
import { TERMS } from './terms.ts'

const RESULTS = join(import.meta.dirname, '..', 'results')
const MAX_EXAMPLES = 10
const LISTED_FROM = 1_000
const EVENTS_AT_ONCE = 10_000

type About = ReturnType<typeof surroundings>

export type RecordResult = ReturnType<typeof resultOf>

export interface ResultParts {
  readonly about: About
  readonly loadAverageAfter: readonly number[]
  readonly command: string
  readonly options: RecordOptions
  /** Faults that were possible on this machine. */
  readonly faults: readonly FaultName[]
  readonly faultSeconds: number
  readonly verdict: Verdict
  readonly violations: readonly string[]
  readonly overload: readonly OverloadFigures[]
}

export function resultOf(parts: ResultParts) {
  const { about, command, options, faults, verdict, violations, overload, faultSeconds } = parts
  const { seconds, windowSeconds, burstSeconds, revocations: perSecond, seed } = options
  const { violations: _, ...revocations } = verdict.revocations
  const { violations: __, ...families } = verdict.families
  const { unexplained, byFault } = verdict.answers
  return {
    benchmark: 'record' as const,
    ...about,
    loadAverageAfter: parts.loadAverageAfter,
    command,
    options: {
      cluster: options.cluster,
      seconds,
      windowSeconds,
      burstSeconds,
      faults,
      revocations: perSecond,
      seed,
    },
    faultSeconds,
    terms: TERMS,
    requests: verdict.requests,
    admitted: verdict.admitted,
    holds: violations.length === 0 && unexplained.length === 0,
    violations: violations.slice(0, MAX_EXAMPLES),
    unexplained: unexplained.length,
    unexplainedExamples: unexplained.slice(0, MAX_EXAMPLES),
    limits: limitFigures(verdict.windows.findings),
    windows: verdict.windows.findings.filter(({ admitted }) => admitted >= LISTED_FROM),
    overload,
    revocations,
    families,
    availability: byFault,
  }
}

/** Returns the worst window of any subject, for each limit. */
function limitFigures(findings: readonly WindowFinding[]) {
  return Object.fromEntries(
    Object.entries(TERMS.limits).map(([name, { limit, windowMs }]) => {
      const own = findings.filter((finding) => finding.limit === name)
      const worst = (of: (finding: WindowFinding) => number) => Math.max(0, ...own.map(of))
      return [
        name,
        {
          limit,
          windowMs,
          subjects: own.length,
          admitted: own.reduce((sum, { admitted }) => sum + admitted, 0),
          worstCertain: worst(({ certain }) => certain),
          worstPossible: worst(({ possible }) => possible),
          worstAroundLoss: worst(({ aroundLoss }) => aroundLoss),
        },
      ]
    }),
  )
}

/** Writes `<date>-record.json`, or `<date>-record-cluster.json`. Returns its name. */
export function writeResult(directory: string | undefined, result: RecordResult): string {
  const folder = directory ?? RESULTS
  mkdirSync(folder, { recursive: true })
  const file = join(
    folder,
    `${result.date.slice(0, 'yyyy-mm-dd'.length)}-record${result.options.cluster ? '-cluster' : ''}.json`,
  )
  writeFileSync(file, `${JSON.stringify(result, null, 2)}\n`)
  return file
}

/** Writes gzipped lines of JSON. Several members form one stream (RFC 1952 section 2.2). */
export function writeHistory(file: string, events: readonly HistoryEvent[]): void {
  const parts: Buffer[] = []
  for (let at = 0; at < events.length; at += EVENTS_AT_ONCE) {
    const lines = events.slice(at, at + EVENTS_AT_ONCE).map((event) => JSON.stringify(event))
    parts.push(gzipSync(`${lines.join('\n')}\n`))
  }
  writeFileSync(file, Buffer.concat(parts))
}

export function report(result: RecordResult): string {
  const { requests, admitted, limits, overload, revocations, families, availability } = result
  const text = (...values: readonly (number | undefined)[]) =>
    values.map((value) => (value === undefined ? '-' : String(rounded(value, 1))))
  const revoked = (name: string, counts: RevocationCounts) => [
    name,
    ...text(counts.revoked, counts.judged, counts.late, counts.within, counts.latestMs),
  ]
  return [
    `${requests} requests, ${admitted} admitted`,
    table(
      ['limit', 'admitted', 'of', 'worst window, certainly', 'possibly', 'around a loss'],
      Object.entries(limits).map(([name, of]) => [
        name,
        ...text(of.admitted, of.limit, of.worstCertain, of.worstPossible, of.worstAroundLoss),
      ]),
    ),
    table(
      ['overload', 'times the limit', 'admitted of it', 'in the worst window', '503'],
      overload.map(({ limit, times, share, leastShare, unavailable }) => [
        limit,
        ...[times, share ?? '-', leastShare ?? '-', unavailable].map(String),
      ]),
    ),
    table(
      ['revocations', 'returned', 'judged', 'late', 'within', 'latest ms'],
      [
        revoked('all', revocations.total),
        ...Object.entries(revocations.byFault).map(([name, counts]) => revoked(name, counts)),
      ],
    ),
    table(
      ['refresh families', 'successors', 'replays refused', 'revoked'],
      [text(families.families, families.rotated, families.replayed, families.ended)],
    ),
    table(
      ['responses', 'requests', '200', '429', '401', '503', 'none'],
      Object.entries(availability).map(([name, of]) => [
        name,
        ...text(of.requests, of.admitted, of.limited, of.revoked, of.unavailable, of.none),
      ]),
    ),
    ...examples('violations', result.violations),
    ...examples(`${result.unexplained} unexplained`, result.unexplainedExamples),
    result.holds ? 'All invariants hold.' : 'NOT all invariants hold.',
  ].join('\n\n')
}

const examples = (what: string, sentences: readonly string[]): readonly string[] =>
  sentences.length === 0 ? [] : [[`${what}, for example:`, ...sentences].join('\n  ')]
