/** Schemas of the results files that the report reads. */
import * as z from 'zod'
import { PUBLISHED, type PublishedId } from '../published.ts'
import { EFFORTS, RUNTIMES } from '../runtimes.ts'

const text = z.string()
const number = z.number()
const publishedIds = z.array(z.enum(Object.keys(PUBLISHED) as [PublishedId])).readonly()

/** Machine, time and revision; in every results file. */
const about = {
  date: z.iso.datetime(),
  command: text,
  commit: z.object({ id: text, changed: z.boolean() }),
  machine: z.looseObject({
    processor: text,
    cores: number,
    memoryGiB: number,
    system: text,
    loadAverageBefore: z.array(number),
  }),
  versions: z.record(text, text),
  redis: text,
}

const list = <Item extends z.ZodType>(item: Item) => z.array(item).readonly()
const runtime = z.enum(RUNTIMES)

/** One measured number. */
const figure = z.object({
  /** Unique in its scenario, kebab-case, and the same in every run. */
  id: text,
  title: text,
  value: number,
  unit: z.enum([
    ...['ms', 'us', 's', '1/s', '%', 'ratio', 'bytes', 'KB', 'MB', 'MB/min', 'cores', 'count'],
  ] as const),
  /** The first and the third quartile of the rounds of which `value` is the median. */
  quartiles: z.tuple([number, number]).readonly().exactOptional(),
  /** The published figures that it is compared with. */
  beside: publishedIds.exactOptional(),
  /**
   * The target of the value, if there is one. It is shown and never fails a run. `stretch` is a
   * stricter value, for orientation.
   */
  aim: z
    .object({ at: z.enum(['most', 'least']), value: number, stretch: number.exactOptional() })
    .exactOptional(),
})

const axis = z.object({ title: text, log: z.boolean().exactOptional() })

const plot = z.object({
  id: text,
  title: text,
  /** `stacked`: one stacked bar for each category. */
  kind: z.enum(['line', 'bar', 'stacked']),
  x: axis,
  y: axis,
  /** Categories of the bars, in order; undefined for lines. */
  categories: list(text).exactOptional(),
  /** Lines: `[x, y]`. Bars: `y` for each category, null if there is none. */
  series: list(
    z.object({
      name: text,
      points: z.union([list(z.tuple([number, number]).readonly()), list(number.nullable())]),
    }),
  ),
  /** Coloured parts of the x axis; only for lines. */
  bands: list(z.object({ name: text, from: number, to: number })).exactOptional(),
})

/** A condition that was checked during the measurement. If it fails, there is no result. */
const check = z.object({
  /** Such as `wrong responses`. */
  what: text,
  /** Such as `0 of 182,204`. */
  seen: text,
})

const table = z.object({ title: text, headings: list(text), rows: list(list(text)) })

const measured = z.object({
  scenario: text,
  title: text,
  runtime,
  tookSeconds: number,
  figures: list(figure),
  checks: list(check),
  plots: list(plot).exactOptional(),
  tables: list(table).exactOptional(),
  /** What was left out and why, how noisy the machine was, and other notes for the reader. */
  notes: list(text).exactOptional(),
})

const suite = z.object({
  ...about,
  benchmark: z.literal('suite'),
  effort: z.enum(EFFORTS),
  measured: list(measured),
  /** Scenarios that failed or could not run, with the reason in one line. */
  failed: list(z.object({ scenario: text, runtime, why: text })),
})

const memory = z.object({
  samples: list(z.tuple([number, number.nullable()]).rest(number).readonly()),
})
const bySecond = list(number.nullable())

const soak = z.object({
  ...about,
  benchmark: z.literal('soak'),
  options: z.object({ minutes: number }),
  load: z.object({
    peakPerSecond: number.exactOptional(),
    offeredPerSecond: number,
    requests: number,
  }),
  invariants: z.array(
    z.object({ what: text, value: text, aim: text, holds: z.boolean().exactOptional() }),
  ),
  minutes: z.array(
    z.object({
      answers: number,
      p50Ms: number.nullable(),
      p99Ms: number.nullable(),
      maxMs: number.nullable(),
      quietP99Ms: number.nullable(),
    }),
  ),
  faults: z.array(
    z.object({
      name: text,
      startSeconds: number,
      endSeconds: number,
      troubles: number,
      recoverySeconds: number.nullable(),
    }),
  ),
  audit: z.object({ answered: number, matched: number, diedWithGateway: number, lost: number }),
  series: z
    .object({
      ok: bySecond,
      refused: bySecond,
      failed: bySecond,
      none: bySecond,
      p50Ms: bySecond,
      p95Ms: bySecond,
      p99Ms: bySecond,
    })
    .exactOptional(),
  memory: z
    .object({ gateways: list(z.object({ heap: memory, resident: memory })) })
    .exactOptional(),
})

const profile = z.object({
  ...about,
  benchmark: z.literal('profile'),
  requests: number,
  cpuMicros: number,
  stages: z.array(z.looseObject({ stage: text, micros: number, share: number })).exactOptional(),
})

const interval = z.object({ median: number, low: number, high: number, coverage: number })
const revision = z.object({ name: text, commit: text.exactOptional() })

const comparison = z.object({
  ...about,
  benchmark: z.literal('compare'),
  base: revision,
  head: revision,
  verdict: z.enum(['ok', 'regression', 'noisy']),
  cpu: interval,
  throughput: interval,
  pairs: z.array(z.object({ cpuRatio: number })),
  options: z.object({ thresholdPercent: number, slowDownPercent: number }),
})

/** One results file. `benchmark` determines its kind. */
export const resultSchema = z.discriminatedUnion('benchmark', [suite, soak, profile, comparison])

export type Result = z.infer<typeof resultSchema>
export type Figure = Readonly<z.infer<typeof figure>>
export type Plot = Readonly<z.infer<typeof plot>>
export type Check = Readonly<z.infer<typeof check>>
export type Table = Readonly<z.infer<typeof table>>
export type Measured = Readonly<z.infer<typeof measured>>
export type Suite = Readonly<z.infer<typeof suite>>
/** The part of a soak that the report reads. */
export type Soak = Readonly<z.infer<typeof soak>>
export type MemorySamples = z.infer<typeof memory>['samples']
/** The part of a profile that the report reads. */
export type Profile = z.infer<typeof profile>
/** The part of a comparison that the report reads. */
export type Compared = z.infer<typeof comparison>
