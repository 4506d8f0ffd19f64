/** Export of traces by OTLP: `import { otlp } from 'portcullis/otlp'`. */
import type { OtlpFeature } from '../gateway/features.ts'
import { traceRequests } from '../middleware/trace-requests.ts'
import { createSpanExporter } from '../observability/tracing/exporter.ts'

/**
 * Returns the export of traces to the collector at `OTLP_ENDPOINT`, for the policy's `features`.
 * Without that variable it creates no spans.
 */
export function otlp(): OtlpFeature {
  return {
    feature: 'otlp',
    spans({ url, headers, sampleRatio }, tally, now) {
      const exporter = createSpanExporter({ url, headers, tally, now })
      return { sampleRatio, trace: traceRequests({ exporter, now }) }
    },
  }
}
