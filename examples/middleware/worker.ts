/** A Worker that answers requests itself and uses Portcullis as middleware. */
import { Hono } from 'hono'
import {
  admit,
  audit,
  authenticate,
  authorize,
  bodyOf,
  callerOf,
  canonicalPath,
  clientAddress,
  consoleAuditSink,
  createAdmission,
  createAuthorizer,
  createRedisRest,
  createTokenVerifier,
  createUpstashAdmissionStore,
  Denied,
  type GatewayVariables,
  limitBody,
  type PolicyLimit,
  problemHandler,
  requestId,
  validate,
} from 'portcullis/parts'
import * as z from 'zod'

export interface Env {
  readonly UPSTASH_REDIS_REST_URL: string
  readonly UPSTASH_REDIS_REST_TOKEN: string
  /** URL of the identity provider, such as `https://idp.example.com`. */
  readonly IDP_URL: string
}

const newNote = z.strictObject({ text: z.string().min(1).max(1000) })
const standard: PolicyLimit = {
  name: 'standard',
  limit: 100,
  windowSeconds: 60,
  by: 'subject',
  onUnavailable: 'deny',
}

export function createApp(env: Env) {
  const verifier = createTokenVerifier({
    issuers: [
      {
        issuer: env.IDP_URL,
        audience: 'https://notes.example.com',
        jwksUri: `${env.IDP_URL}/.well-known/jwks.json`,
        algorithms: ['ES256', 'RS256'],
        typ: 'at+jwt',
        clockTolerance: 5,
        maxTokenAge: 86_400,
        rolesClaim: 'roles',
        tenantClaim: 'tenant',
      },
    ],
  })
  const { UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token } = env
  const store = createUpstashAdmissionStore(createRedisRest({ url, token }))
  const admission = createAdmission({ store, now: Date.now })
  const authorizer = createAuthorizer(
    new Map([
      ['reader', ['notes:read']],
      ['writer', ['notes:read', 'notes:write']],
    ]),
  )
  const may = (permission: string) => authorize({ authorizer, permission })

  const app = new Hono<{ Variables: GatewayVariables }>()
  app.onError(problemHandler())
  app.use(requestId(), audit({ sink: consoleAuditSink() }), canonicalPath(), clientAddress())
  app.use(authenticate({ verifier }), admit({ admission, limits: [standard] }))

  app.get('/notes', may('notes:read'), (c) => c.json({ notesOf: callerOf(c)?.subject }))
  app.post(
    '/notes',
    limitBody({ maxBytes: 65_536 }),
    may('notes:write'),
    validate({ body: newNote }),
    async (c) => c.json(newNote.parse(await new Response(bodyOf(c)).json()), 201),
  )
  app.notFound(() => {
    throw new Denied({ code: 'not_found' })
  })
  return app
}

/**
 * Created on the first request of an isolate and reused, because it caches keys, tokens and
 * refusals.
 */
let app: ReturnType<typeof createApp> | undefined

export default {
  fetch(request, env, context) {
    app ??= createApp(env)
    return app.fetch(request, env, context)
  },
} satisfies ExportedHandler<Env>
