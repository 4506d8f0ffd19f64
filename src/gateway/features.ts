/** What the features in a policy's list `features` do for the gateway. */
import type { Hono, MiddlewareHandler } from 'hono'
import type { SpanTally } from '../observability/tracing/exporter.ts'
import type { Policy } from '../policy/policy.ts'
import type { OpenApiOptions } from '../routes/openapi/routes.ts'
import type { TracesConfig } from '../validators/environment.ts'
import type { Feature } from '../validators/feature.ts'

export interface OpenApiFeature extends Feature<'openapi'> {
  /** Creates the routes below `/-` that describe the gateway's own calls. */
  routes(options: OpenApiOptions): Hono
}

export interface SpanServices {
  /** Share of the traces that begin here which is recorded: 0 to 1. */
  readonly sampleRatio: number
  /** Exports the spans of a request. Comes after `requestId`. */
  readonly trace: MiddlewareHandler
}

export interface OtlpFeature extends Feature<'otlp'> {
  /** Creates the export of spans. `now` is in milliseconds since the epoch. */
  spans(config: TracesConfig, tally: SpanTally, now: () => number): SpanServices
}

/** The port of each feature, by its name. */
interface Ports {
  readonly openapi: OpenApiFeature
  readonly otlp: OtlpFeature
}

/** Returns a feature of the policy, or undefined if the policy does not import it. */
export function featureOf<Name extends keyof Ports>(
  { features }: Pick<Policy, 'features'>,
  name: Name,
): Ports[Name] | undefined {
  // The only function that creates an object of this name returns this port.
  return features.find(({ feature }) => feature === name) as Ports[Name] | undefined
}
