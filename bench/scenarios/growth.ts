/** What a request costs as routes, tokens, limits, tuples, stored events and open streams grow. */
import { auditRows } from '../growth/audit-rows.ts'
import { limits, processes, routes, tokens } from '../growth/policies.ts'
import { streams } from '../growth/streams.ts'
import { type Grown, growthFigures, growthTable, type Subject } from '../growth/table.ts'
import { tuples } from '../growth/tuples.ts'
import { type Contestant, measureRounds } from '../measure/rounds.ts'
import { noiseNotes, noneOf, sumOf } from '../measure/statistics.ts'
import { residentBytesOf } from '../processes/proc.ts'
import type { Effort } from '../runtimes.ts'
import type { Figure, Scenario, ScenarioContext, Table } from '../scenario.ts'
import { mintTokens } from '../stack/credentials.ts'
import { startGround } from '../stack/gateway.ts'

const SUBJECTS: readonly Subject[] = [
  ...[routes, limits, tokens, tuples],
  ...[auditRows, streams, processes],
]
const CONNECTIONS = 32
const BYTES_PER_MEGABYTE = 1_000_000
const EFFORTS = {
  quick: { rounds: 1, seconds: 0.5, warmUpSeconds: 0.3, most: 100 },
  full: { rounds: 5, seconds: 1.5, warmUpSeconds: 2, most: 100_000 },
} as const satisfies Record<Effort, object>

interface Grew {
  readonly subject: Subject
  readonly grown: readonly Grown[]
  /** Sizes that were not measured, with the reason. */
  readonly left: readonly string[]
}

export const growth: Scenario = {
  id: 'growth',
  title: 'Growth of the gateway on Node',
  measures:
    'What a request costs as one size grows: routes, limits of a route, tokens in use, relation ' +
    'tuples, stored audit events, open streams, and processes. All sizes of a table are measured in ' +
    'turn. A factor per decade of 1 means that the cost does not depend on the size.',
  runtimes: ['node'],
  seconds: { quick: 60, full: 400 },

  async run(context) {
    const { detail } = context
    const known = SUBJECTS.map(({ id }) => id)
    for (const id of detail.tables ?? [])
      if (!known.includes(id))
        throw new Error(`--tables: unknown table "${id}"; known: ${known.join(', ')}`)
    const chosen = SUBJECTS.filter(({ id }) => detail.tables?.includes(id) ?? true)
    const grew: Grew[] = []
    for (const subject of chosen) grew.push(await measure(context, subject))
    const summaries = grew.flatMap(({ grown }) => grown.map(({ summary }) => summary))
    return {
      figures: grew.flatMap(({ subject, grown }): readonly Figure[] =>
        growthFigures(subject, grown),
      ),
      checks: [
        {
          what: 'wrong responses',
          seen: noneOf(sumOf(summaries, (each) => sumOf(each.rounds, (one) => one.requests))),
        },
      ],
      tables: grew.map(({ subject, grown }): Table => growthTable(subject, grown)),
      notes: [...grew.flatMap(({ left }) => left), ...noiseNotes(summaries)],
      details: { grew: grew.map(({ subject: { id }, grown }) => ({ id, grown })) },
    }
  },
}

/** Measures one table. Its processes end before the next one starts. */
async function measure(context: ScenarioContext, subject: Subject): Promise<Grew> {
  const { effort, detail, onProgress, shutdown: outer } = context
  const { rounds, seconds, warmUpSeconds, most } = { ...EFFORTS[effort], ...detail }
  const { connections = CONNECTIONS } = detail
  const closers: (() => Promise<void>)[] = []
  const closeAll = async () => {
    for (const close of closers.splice(0).reverse()) await close()
  }
  outer.defer(closeAll)
  const shutdown = { ...outer, defer: (close: () => Promise<void>) => void closers.push(close) }
  const ground = await startGround({ shutdown })
  const stage = {
    ...{ ...context, shutdown, ground, connections },
    tokens: await mintTokens(ground),
  }
  const left: string[] = []
  const sizes = subject.sizes.filter((size) => {
    const why = size > most ? `--most is ${most.toLocaleString('en')}` : subject.obstacle?.(size)
    if (why !== undefined)
      left.push(`Not measured: ${size.toLocaleString('en')} ${subject.title}: ${why}.`)
    return why === undefined
  })
  const contestants: Contestant[] = []
  for (const size of sizes) contestants.push(await subject.start(stage, size))
  const summaries = await measureRounds(contestants, {
    ...{ rounds, seconds, warmUpSeconds, onProgress },
    backends: ground.backends,
    pace: { connections, mayShed: true },
  })
  const grown = summaries.map((summary, index) => ({
    size: sizes[index] ?? 0,
    summary,
    residentMb: (residentBytesOf(contestants[index]?.pid ?? 0) ?? 0) / BYTES_PER_MEGABYTE,
  }))
  await closeAll()
  return { subject, grown, left }
}
