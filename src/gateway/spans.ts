/** Composes the export of spans. */

import {
  createSpanExporter,
  type SpanExporter,
  type SpanTally,
} from '../observability/tracing/exporter.ts'
import type { Config } from '../validators/environment.ts'

export interface SpanServices {
  readonly exporter: SpanExporter
  /** The share of the traces that begin here which is recorded: 0 to 1. */
  readonly sampleRatio: number
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Creates the span exporter. Returns undefined if no collector is configured. */
export function spanServices(
  { traces }: Config,
  tally: SpanTally,
  now: () => number,
): SpanServices | undefined {
  if (traces === undefined) return undefined
  const { sampleRatio } = traces
  return { exporter: createSpanExporter({ ...traces, tally, now }), sampleRatio, now }
}
