/** Environment variables of the export of traces. */
import * as z from 'zod/mini'
import { type Config, type FeatureVariables, readVariables } from '../../validators/environment.ts'
import { httpUrl } from '../../validators/variables.ts'
import { headerList, ratio } from './variables.ts'

export const traceVariables = {
  shape: {
    OTLP_ENDPOINT: z.optional(
      httpUrl.check(z.refine((url) => !/[?#]/.test(url), 'must have no query or fragment')),
    ),
    OTLP_HEADERS: z.optional(headerList),
    OTLP_SAMPLE_RATIO: z.optional(ratio),
  },
} satisfies FeatureVariables

/** Returns the collector. Undefined if there is none. */
export function readTraces(config: Pick<Config, 'variables'>) {
  const { OTLP_ENDPOINT: endpoint, ...env } = readVariables(config, traceVariables)
  if (endpoint === undefined) return undefined
  return {
    url: `${endpoint.replace(/\/+$/, '')}/v1/traces`,
    /** May contain credentials. */
    headers: env.OTLP_HEADERS ?? {},
    /** Share of the traces that begin in this gateway and are recorded: 0 to 1. */
    sampleRatio: env.OTLP_SAMPLE_RATIO ?? 1,
  }
}
