/** The result of a soak, and how it is written and printed. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { table } from '../text.ts'
import type { AuditAccount } from './audit.ts'
import type { Invariant } from './invariants.ts'
import type { Slope } from './memory.ts'
import type { Sampled } from './monitor.ts'
import type { SoakOptions } from './options.ts'
import type { MinuteFigures, SecondFigures } from './series.ts'

/** Seconds count from the start of the load. */
export interface SoakResult {
  readonly benchmark: 'soak'
  readonly date: string
  readonly command: string
  readonly commit: { readonly id: string; readonly changed: boolean }
  readonly options: SoakOptions
  readonly load: {
    readonly peakPerSecond: number | undefined
    readonly offeredPerSecond: number
    readonly requests: number
  }
  readonly invariants: readonly Invariant[]
  readonly minutes: readonly MinuteFigures[]
  readonly faults: readonly {
    readonly name: string
    readonly startSeconds: number
    readonly endSeconds: number
    /** Number of failures that it explains, and the time from its end to the last of them. */
    readonly troubles: number
    readonly recoverySeconds: number | null
  }[]
  readonly audit: AuditAccount
  readonly memory: {
    readonly gateways: readonly {
      /** Heap of the gateway's own isolate after a garbage collection. This value is judged. */
      readonly heap: MemoryFigures
      /** Memory of the workerd process, with the audit Worker, the queue and D1. */
      readonly resident: MemoryFigures
    }[]
  }
  readonly answers: Readonly<Record<string, Readonly<Record<string, number>>>>
  readonly series: { readonly [Column in keyof SecondFigures]: readonly SecondFigures[Column][] }
  readonly [about: string]: unknown
}

/** Megabytes over time, and the fitted line. */
export interface MemoryFigures {
  readonly slope: Slope | undefined
  readonly samples: readonly Sampled[]
}

export function columnsOf(seconds: readonly SecondFigures[]): SoakResult['series'] {
  const column = <Name extends keyof SecondFigures>(name: Name) =>
    seconds.map((figures) => figures[name])
  return {
    answers: column('answers'),
    ok: column('ok'),
    refused: column('refused'),
    failed: column('failed'),
    none: column('none'),
    p50Ms: column('p50Ms'),
    p95Ms: column('p95Ms'),
    p99Ms: column('p99Ms'),
  }
}

export function writeResult(file: string, result: SoakResult): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, `${compactJson(result)}\n`)
}

/** Formats JSON with an indent of two; lists of numbers and of pairs stay on one line. */
function compactJson(value: unknown): string {
  return JSON.stringify(value, null, 2).replace(
    /\[\s+(?:(?:-?[\d.e+-]+|null|\[\s*[^[\]]*?\s*\]),?\s*)+\]/g,
    (list) => list.replace(/\s+/g, ''),
  )
}

export function report(result: SoakResult): string {
  const { invariants, audit, answers } = result
  const verdict = { true: 'holds', false: 'BROKEN', undefined: 'too short to decide' }
  return [
    table(
      ['invariant', 'value', 'aim', ''],
      invariants.map(({ what, value, aim, holds }) => [what, value, aim, verdict[`${holds}`]]),
    ),
    table(
      ['request', 'responses'],
      Object.entries(answers).map(([kind, byAnswer]) => [
        kind,
        Object.entries(byAnswer)
          .toSorted(([, a], [, b]) => b - a)
          .map(([answer, count]) => `${answer}: ${count}`)
          .join(', '),
      ]),
      2,
    ),
    `Audit: ${audit.answered} responses, ${audit.matched} with exactly one event; ${audit.diedWithGateway} events lost ` +
      `with a killed gateway, ${audit.declaredLost} declared lost, ${audit.shed} of shed load.`,
    memoryTable(result),
    ...invariants
      .filter(({ holds }) => holds === false)
      .map(({ what, examples }) => [`${what}, for example:`, ...examples].join('\n  ')),
  ].join('\n\n')
}

/** Returns the table of judged values and of others for comparison. */
function memoryTable({ memory }: SoakResult): string {
  const kinds = { heap: "the isolate's heap", resident: 'resident in its process' } as const
  const last = ({ samples }: MemoryFigures) => samples.at(-1)?.[1]?.toFixed(0) ?? '-'
  const first = ({ samples }: MemoryFigures) => samples[0]?.[1]?.toFixed(0) ?? '-'
  return table(
    ['memory', 'first MB', 'last MB', 'MB/min', 'over minutes'],
    memory.gateways.flatMap((gateway, index) =>
      (['heap', 'resident'] as const).map((kind) => {
        const { slope } = gateway[kind]
        return [
          `gateway ${index + 1}: ${kinds[kind]}`,
          ...[first(gateway[kind]), last(gateway[kind])],
          slope === undefined ? '-' : `${slope.mbPerMinute} +- ${slope.plusMinus}`,
          slope === undefined ? '-' : String(slope.minutes),
        ]
      }),
    ),
  )
}
