/** Export of traces by OTLP: `import { otlp } from 'portcullis/otlp'`. */
import type { Feature } from '../../gateway/feature.ts'
import { createSpanExporter } from './exporter.ts'
import { readTraces, traceVariables } from './schema.ts'
import { traceRequests } from './trace-requests.ts'

/**
 * Returns the export of traces to the collector at `OTLP_ENDPOINT`, for the policy's `features`.
 * Without that variable it creates no spans.
 */
export function otlp(): Feature {
  return {
    name: 'otlp',
    presence: 'none',
    variables: traceVariables,
    create({ config, publicOriginOf, spanTally: tally, now }) {
      const traces = readTraces(config)
      if (traces === undefined) return {}
      const { url, headers, sampleRatio } = traces
      const exporter = createSpanExporter({ url, headers, tally, now })
      return { traces: { sampleRatio, trace: traceRequests({ exporter, publicOriginOf, now }) } }
    },
  }
}
