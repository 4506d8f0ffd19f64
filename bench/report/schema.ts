/** Schemas of the results files that the report reads. */
import * as z from 'zod'
import { EFFORTS, RUNTIMES } from '../runtimes.ts'

const text = z.string()
const number = z.number()

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
/** Earlier results also have figures of `wrangler dev`. */
const runtime = z.enum([...RUNTIMES, 'wrangler'])

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
  /** The published figures that it is compared with, by their ids in `published.json`. */
  beside: z.array(text).readonly().exactOptional(),
  /**
   * The target of the value, if there is one. It is shown and never fails a run. `stretch` is a
   * stricter value, for orientation.
   */
  aim: z
    .object({ at: z.enum(['most', 'least']), value: number, stretch: number.exactOptional() })
    .exactOptional(),
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
  audit: z.object({ answered: number, matched: number, diedWithGateway: number, lost: number }),
})

const profile = z.object({
  ...about,
  benchmark: z.enum(['profile', 'profile-node', 'profile-workerd', 'profile-node-durable']),
  requests: number,
  cpuMicros: number,
  /** By package and folder; by stage in earlier results. */
  owners: z.array(z.object({ owner: text, micros: number, share: number })).exactOptional(),
  stages: z.array(z.object({ stage: text, micros: number, share: number })).exactOptional(),
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
  pairs: z.array(z.object({ cpuRatio: number })),
  starts: z.array(number).exactOptional(),
  options: z.object({
    thresholdPercent: number,
    slowDownPercent: number,
    runtime: runtime.exactOptional(),
    durable: z.boolean().exactOptional(),
  }),
})

/** One results file. `benchmark` determines its kind. */
export const resultSchema = z.discriminatedUnion('benchmark', [suite, soak, profile, comparison])

export type Result = z.infer<typeof resultSchema>
export type Figure = Readonly<z.infer<typeof figure>>
export type Check = Readonly<z.infer<typeof check>>
export type Table = Readonly<z.infer<typeof table>>
export type Measured = Readonly<z.infer<typeof measured>>
export type Suite = Readonly<z.infer<typeof suite>>
/** The part of a soak that the report reads. */
export type Soak = Readonly<z.infer<typeof soak>>
/** The part of a profile that the report reads. */
export type Profile = z.infer<typeof profile>
/** The part of a comparison that the report reads. */
export type Compared = z.infer<typeof comparison>
