/** Schemas of the results files that the report reads. */
import * as z from 'zod'
import { PUBLISHED, type PublishedId } from '../published.ts'
import type { SuiteResult } from '../scenario.ts'

const text = z.string()
const number = z.number()
const publishedIds = z.array(z.enum(Object.keys(PUBLISHED) as [PublishedId]))

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

const figure = z.object({
  id: text,
  title: text,
  value: number,
  unit: z.enum([
    ...['ms', 'us', 's', '1/s', '%', 'ratio', 'bytes', 'KB', 'MB', 'MB/min', 'cores', 'count'],
  ] as const),
  beside: publishedIds.exactOptional(),
  aim: z.object({ at: z.enum(['most', 'least']), value: number }).exactOptional(),
})

const axis = z.object({ title: text, log: z.boolean().exactOptional() })

const plot = z.object({
  id: text,
  title: text,
  kind: z.enum(['line', 'bar', 'stacked']),
  x: axis,
  y: axis,
  categories: z.array(text).exactOptional(),
  series: z.array(
    z.object({
      name: text,
      points: z.union([z.array(z.tuple([number, number])), z.array(number.nullable())]),
    }),
  ),
})

const measured = z.object({
  scenario: text,
  title: text,
  runtime: z.enum(['workerd', 'wrangler']),
  tookSeconds: number,
  figures: z.array(figure),
  checks: z.array(z.object({ what: text, seen: text })),
  plots: z.array(plot).exactOptional(),
  tables: z
    .array(z.object({ title: text, headings: z.array(text), rows: z.array(z.array(text)) }))
    .exactOptional(),
  notes: z.array(text).exactOptional(),
})

const suite = z.object({
  ...about,
  benchmark: z.literal('suite'),
  effort: z.enum(['quick', 'full']),
  measured: z.array(measured),
  failed: z.array(
    z.object({ scenario: text, runtime: z.enum(['workerd', 'wrangler']), why: text }),
  ),
}) satisfies z.ZodType<SuiteResult>

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
})

const sampled = { selfMicros: number, share: number }

const profile = z.object({
  ...about,
  benchmark: z.literal('profile'),
  requests: number,
  cpuMicros: number,
  stages: z.array(z.looseObject({ stage: text, micros: number, share: number })).exactOptional(),
  modules: z.array(z.object({ module: text, platformMicros: number, ...sampled })),
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
/** The part of a suite that the report reads; the same as `SuiteResult`, except the machine. */
export type Suite = z.infer<typeof suite>
export type Soak = z.infer<typeof soak>
export type Profile = z.infer<typeof profile>
export type Compared = z.infer<typeof comparison>
