/** What the features in a policy's list `features` do for the gateway. */
import type { Hono, MiddlewareHandler } from 'hono'
import type { Breakers } from '../isolate/breakers.ts'
import type { Tally } from '../isolate/tally.ts'
import type { SpanTally } from '../observability/tracing/exporter.ts'
import type { Policy } from '../policy/policy.ts'
import type { PolicyRelations } from '../policy/relations.ts'
import type { RedisRest } from '../redis/rest.ts'
import type { RelationChecker } from '../relations/checker.ts'
import type { RelationCheck } from '../relations/redis/check.ts'
import type { CallGroup } from '../routes/admin/calls.ts'
import type { AdminRelations } from '../routes/admin/stores.ts'
import type { OpenApiOptions } from '../routes/openapi/routes.ts'
import type { Config, TracesConfig } from '../validators/environment.ts'
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

export interface RelationParts {
  readonly redis: RedisRest
  readonly watch: Breakers['watch']
  /** Hits and misses of the cache of decisions. */
  readonly tally: Tally
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

export interface RelationServices {
  /**
   * The check that runs inside the admission call. Undefined if Redis does not decide relations.
   */
  readonly check: RelationCheck | undefined
  /** Decides relations for `admit` and `authorize`. */
  readonly checker: RelationChecker
  /** What the calls about relations use. */
  readonly admin: AdminRelations
}

/** Compiled relations, as the gateway uses them. */
export interface GatewayRelations extends PolicyRelations {
  services(
    relations: PolicyRelations,
    config: Pick<Config, 'decisionPoints' | 'issuers' | 'publicUrl'>,
    parts: RelationParts,
  ): RelationServices
  /** The operators' calls about relations. */
  readonly calls: CallGroup
}

/** Returns the relations of the policy, or undefined if it has none. */
export function relationsOf({
  relations,
}: Pick<Policy, 'relations'>): GatewayRelations | undefined {
  // Only relations() creates compiled relations.
  return relations as GatewayRelations | undefined
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
