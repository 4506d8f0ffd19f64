/**
 * Features that users write: `import { defineFeature } from 'portcullis/feature'`. Experimental: its form may
 * change in any version.
 */

export type { Principal } from './access/principal.ts'
export { Denied, Misconfigured, Unavailable } from './errors.ts'
export type { Feature } from './gateway/feature.ts'
export type {
  CreatedFeature,
  FeatureCall,
  FeatureCallRequest,
  FeatureCounter,
  FeatureMetricDeclaration,
  FeatureProblemDeclaration,
  FeatureRoute,
  FeatureStage,
  FeatureStages,
  OwnFeatureParts,
  RefusalOptions,
} from './gateway/own-feature/declaration.ts'
export { defineFeature, type FeatureDefinition } from './gateway/own-feature/define-feature.ts'
export { callerOf, clientAddressOf, requestIdOf } from './middleware/context.ts'
export type { PolicyRoute } from './policy/policy.ts'
export type { RedisCommand } from './redis/connection.ts'
