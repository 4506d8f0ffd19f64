/** Environment variables of the export of traces. */
import * as z from 'zod/mini'
import { type Config, type FeatureVariables, readVariables } from '../../validators/environment.ts'
import { converted } from '../../validators/schema-parts.ts'
import { httpUrl } from '../../validators/variables.ts'

/** An HTTP field name (RFC 9110 section 5.1). */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
/** Visible ASCII, and spaces inside: values that every HTTP client can send. */
const HEADER_VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/

/**
 * `name=value,name=value` with percent-encoded values, as in `OTEL_EXPORTER_OTLP_HEADERS`. An error
 * never contains the text, because values may be secret.
 */
const headerList = z.pipe(
  z.string(),
  z.transform((text, context) => {
    const headers: Record<string, string> = {}
    for (const member of text.split(',')) {
      const equals = member.indexOf('=')
      const name = member.slice(0, Math.max(0, equals)).trim()
      const value = decoded(member.slice(equals + 1).trim())
      if (!HEADER_NAME.test(name) || value === undefined || !HEADER_VALUE.test(value)) {
        const message = 'must be name=value pairs separated by commas, with percent-encoded values'
        context.issues.push({ code: 'custom', message, input: text })
        return z.NEVER
      }
      headers[name] = value
    }
    return headers
  }),
)

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

const ratio = converted(
  z
    .string()
    .check(z.regex(/^(?:0|1|0?\.\d{1,9}|1\.0{1,9}|0\.\d{1,9})$/, 'must be a number from 0 to 1')),
  Number,
)

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
