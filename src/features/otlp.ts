/** Export of traces by OTLP: `import { otlp } from 'portcullis/otlp'`. */
import type { GatewayFeature } from '../gateway/features.ts'
import { traceRequests } from '../middleware/trace-requests.ts'
import { createSpanExporter } from '../observability/tracing/exporter.ts'
import { tracesOf, traceVariables } from '../validators/traces.ts'

/**
 * Returns the export of traces to the collector at `OTLP_ENDPOINT`, for the policy's `features`.
 * Without that variable it creates no spans.
 */
export function otlp(): GatewayFeature {
  return {
    feature: 'otlp',
    variables: traceVariables,
    services({ config, publicOriginOf, spanTally: tally, now }) {
      const traces = tracesOf(config)
      if (traces === undefined) return {}
      const { url, headers, sampleRatio } = traces
      const exporter = createSpanExporter({ url, headers, tally, now })
      return { spans: { sampleRatio, trace: traceRequests({ exporter, publicOriginOf, now }) } }
    },
  }
}
