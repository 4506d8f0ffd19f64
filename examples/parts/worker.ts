/** The fewest parts: a token, a limit and a permission in front of one route. */
import { Hono } from 'hono'
import {
  admit,
  authenticate,
  authorize,
  callerOf,
  clientAddress,
  createAdmission,
  createAuthorizer,
  createRedisRest,
  createTokenVerifier,
  createUpstashAdmissionStore,
  type GatewayVariables,
  type IssuerConfig,
  type PolicyLimit,
} from 'portcullis/parts'

export interface Env {
  readonly UPSTASH_REDIS_REST_URL: string
  readonly UPSTASH_REDIS_REST_TOKEN: string
  /** URL of the identity provider, such as `https://idp.example.com`. */
  readonly IDP_URL: string
}

const providerAt = (url: string): IssuerConfig => ({
  issuer: url,
  audience: 'https://notes.example.com',
  jwksUri: `${url}/.well-known/jwks.json`,
  algorithms: ['ES256', 'RS256'],
  typ: 'at+jwt',
  clockTolerance: 5,
  maxTokenAge: 86_400,
  rolesClaim: 'roles',
  tenantClaim: 'tenant',
})
const standard: PolicyLimit = {
  name: 'standard',
  limit: 100,
  windowSeconds: 60,
  by: 'subject',
  onUnavailable: 'deny',
}

function createApp(env: Env) {
  const { UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token } = env
  const verifier = createTokenVerifier({ issuers: [providerAt(env.IDP_URL)] })
  const store = createUpstashAdmissionStore(createRedisRest({ url, token }))
  const admission = createAdmission({ store, now: Date.now })
  const authorizer = createAuthorizer(new Map([['reader', ['notes:read']]]))
  return new Hono<{ Variables: GatewayVariables }>()
    .use(clientAddress(), authenticate({ verifier }), admit({ admission, limits: [standard] }))
    .get('/notes', authorize({ authorizer, permission: 'notes:read' }), (c) =>
      c.json({ notesOf: callerOf(c)?.subject }),
    )
}

/** Created on the first request of an isolate, because it caches keys, tokens and refusals. */
let app: ReturnType<typeof createApp> | undefined

export default {
  fetch(request, env, context) {
    app ??= createApp(env)
    return app.fetch(request, env, context)
  },
} satisfies ExportedHandler<Env>
