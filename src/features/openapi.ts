/** The description of the gateway's own calls: `import { openapi } from 'portcullis/openapi'`. */
import type { GatewayFeature } from '../gateway/features.ts'
import { openApiRoutes } from '../routes/openapi/routes.ts'

/** Returns `GET /-/openapi.json` and the page `GET /-/docs`, for the policy's `features`. */
export function openapi(): GatewayFeature {
  return { feature: 'openapi', services: () => ({ description: openApiRoutes }) }
}
