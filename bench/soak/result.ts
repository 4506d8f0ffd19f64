/** The result of a soak, and how it is written and printed. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { table } from '../text.ts'
import type { Slowest } from './slowest.ts'
import type { soak } from './soak.ts'

/** Seconds count from the start of the load. */
export type SoakResult = Awaited<ReturnType<typeof soak>>

export function writeResult(file: string, result: object): void {
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

export function report(
  result: Pick<SoakResult, 'invariants' | 'audit' | 'answers' | 'memory' | 'slowest'>,
): string {
  const { invariants, audit, answers, memory, slowest } = result
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
    memoryTable(memory),
    ...slowest.map(slowestTable),
    ...invariants
      .filter(({ holds }) => holds === false)
      .map(({ what, examples }) => [`${what}, for example:`, ...examples].join('\n  ')),
  ].join('\n\n')
}

/** Returns the table of judged values and of others for comparison. */
function memoryTable(memory: SoakResult['memory']): string {
  const kinds = { heap: "the isolate's heap", resident: 'resident in its process' } as const
  type Figures = (typeof memory)['gateways'][number]['heap']
  const last = ({ samples }: Figures) => samples.at(-1)?.[1]?.toFixed(0) ?? '-'
  const first = ({ samples }: Figures) => samples[0]?.[1]?.toFixed(0) ?? '-'
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

/** Returns the table of where the slowest requests without a fault spent their time. */
function slowestTable({ share, requests, leastMs, ...of }: Slowest[number]): string {
  const meanwhile = Object.entries(of.meanwhile).map(
    ([what, ms]) => [`meanwhile, ${what}`, ms] as const,
  )
  return table(
    [`slowest ${100 * share} %, ${requests} from ${leastMs} ms`, 'mean ms', 'longest part of'],
    [...Object.entries(of.parts), ...meanwhile]
      .filter(([, ms]) => ms > 0)
      .map(([name, ms]) => [name, ms.toFixed(1), String(of.longest[name] ?? '')]),
  )
}
