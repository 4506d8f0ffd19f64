/** What exports spans, made of an environment. */
import type { Config } from '../config.ts'
import { createSpanExporter, type SpanExporter, type SpanTally } from '../tracing/exporter.ts'

export interface SpanServices {
  readonly exporter: SpanExporter
  /** Of the traces that begin here, which share is recorded: 0 to 1. */
  readonly sampleRatio: number
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Undefined where no collector is configured. */
export function spanServices(
  { traces }: Config,
  tally: SpanTally,
  now: () => number,
): SpanServices | undefined {
  if (traces === undefined) return undefined
  const { sampleRatio } = traces
  return { exporter: createSpanExporter({ ...traces, tally, now }), sampleRatio, now }
}
