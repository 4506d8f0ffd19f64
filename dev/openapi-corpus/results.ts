/** Sums up the outcomes of a run, and writes them as the table of the documentation. */
import type { Comparison } from './compare.ts'
import type { Outcome } from './examine.ts'

/** The file that `--record` writes. */
export interface Results {
  readonly command: string
  readonly date: string
  readonly revision: string
  readonly node: string
  /** Number of documents by package. */
  readonly packages: Readonly<Record<string, number>>
  readonly documents: number
  readonly refused: readonly string[]
  readonly operations: number
  readonly mapped: number
  /** HEAD operations, which the route of a GET answers. */
  readonly answeredByGet: number
  /** Number of the other operations, by the reason that a note gives. */
  readonly reasons: Readonly<Record<string, number>>
  readonly notes: {
    readonly unmapped: number
    readonly approximated: number
    readonly assumed: number
  }
  /** Documents with at least one route. */
  readonly withRoutes: number
  /** Documents whose routes a policy accepts. */
  readonly policies: number
  readonly crashes: readonly string[]
  readonly importSeconds: number
  readonly slowest: readonly { readonly document: string; readonly seconds: number }[]
  readonly comparison: Counts & { readonly disagreements: readonly string[] }
}

type Counts = Readonly<Record<Exclude<keyof Comparison, 'disagreements'>, number>>

const SLOWEST = 5

/** `nameOf` returns the name of a document without the folder of the cache. */
export function summarized(
  outcomes: readonly Outcome[],
  nameOf: (document: string) => string,
): Omit<Results, 'command' | 'date' | 'revision' | 'node' | 'packages'> {
  const sum = (of: (outcome: Outcome) => number | undefined) =>
    outcomes.reduce((total, outcome) => total + (of(outcome) ?? 0), 0)
  const counted = (key: keyof Counts) => sum(({ comparison }) => comparison?.[key])
  const texts = (of: (outcome: Outcome) => readonly string[]) =>
    outcomes.flatMap((outcome) => of(outcome).map((text) => `${nameOf(outcome.document)}: ${text}`))
  const reasons = new Map<string, number>()
  for (const { reasons: own = {} } of outcomes)
    for (const [reason, count] of Object.entries(own))
      reasons.set(reason, (reasons.get(reason) ?? 0) + count)
  return {
    documents: outcomes.length,
    refused: texts(({ refusal }) => (refusal === undefined ? [] : [refusal])),
    operations: sum(({ operations }) => operations),
    mapped: sum(({ routes }) => routes),
    answeredByGet: sum((outcome) => outcome.answeredByGet),
    reasons: Object.fromEntries([...reasons].sort(([, one], [, other]) => other - one)),
    notes: {
      unmapped: sum(({ notes }) => notes?.unmapped),
      approximated: sum(({ notes }) => notes?.approximated),
      assumed: sum(({ notes }) => notes?.assumed),
    },
    withRoutes: sum(({ routes = 0 }) => Math.min(routes, 1)),
    policies: sum(({ isPolicy }) => Number(isPolicy ?? false)),
    crashes: texts(({ crash }) => (crash === undefined ? [] : [crash])),
    importSeconds: Math.round(sum(({ seconds }) => seconds)),
    slowest: outcomes
      .toSorted((one, other) => other.seconds - one.seconds)
      .slice(0, SLOWEST)
      .map(({ document, seconds }) => ({
        document: nameOf(document),
        seconds: Number(seconds.toFixed(1)),
      })),
    comparison: {
      compared: counted('compared'),
      refusedByAjv: counted('refusedByAjv'),
      requests: counted('requests'),
      valid: counted('valid'),
      noted: counted('noted'),
      imprecise: counted('imprecise'),
      disagreements: texts(({ comparison }) => comparison?.disagreements ?? []),
    },
  }
}

/** Returns the rows of the table. */
export function rowsOf(
  results: ReturnType<typeof summarized>,
): readonly (readonly [what: string, value: string])[] {
  const { comparison, notes } = results
  const number = (value: number) => value.toLocaleString('en-US')
  return [
    ['documents', number(results.documents)],
    ['refused', number(results.refused.length)],
    ['crashes', number(results.crashes.length)],
    ['operations', number(results.operations)],
    ['operations with a route', number(results.mapped)],
    ['HEAD operations, answered by the route of GET', number(results.answeredByGet)],
    ...Object.entries(results.reasons).map(
      ([reason, count]) => [`listed: ${reason}`, number(count)] as const,
    ),
    [
      'notes: not mapped, approximated, assumed',
      [notes.unmapped, notes.approximated, notes.assumed].map(number).join(', '),
    ],
    ['documents with routes', number(results.withRoutes)],
    ['of them accepted by the policy', number(results.policies)],
    ['operations compared with ajv', number(comparison.compared)],
    [
      'requests compared: all, valid by ajv',
      `${number(comparison.requests)}, ${number(comparison.valid)}`,
    ],
    ['schemas not compared, because ajv refuses them', number(comparison.refusedByAjv)],
    ['accepted although ajv refuses, with a note', number(comparison.noted)],
    ['accepted although ajv refuses: multiples of large numbers', number(comparison.imprecise)],
    ['other differences', number(comparison.disagreements.length)],
    ['seconds of all imports', number(results.importSeconds)],
    ...results.slowest
      .slice(0, 1)
      .map(({ document, seconds }) => [`slowest: ${document}`, `${seconds} s`] as const),
  ]
}

/** Returns the table in Markdown. */
export const tableOf = (results: ReturnType<typeof summarized>): string =>
  ['| | |', '|---|---|', ...rowsOf(results).map(([what, value]) => `| ${what} | ${value} |`)].join(
    '\n',
  )
