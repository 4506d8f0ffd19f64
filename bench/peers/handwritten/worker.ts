/**
 * A typical handwritten gateway. Each library is used as in its README: jose, Upstash's Redis and
 * rate limiter with their defaults, zod in Hono's validator, Hono's proxy. Expensive objects are
 * created once per isolate, and keys are local, so only revocation and limit need a call.
 */
import { Ratelimit } from '@upstash/ratelimit'
import { Redis } from '@upstash/redis/cloudflare'
import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { proxy } from 'hono/proxy'
import { validator } from 'hono/validator'
import { createLocalJWKSet, type JSONWebKeySet, type JWTPayload, jwtVerify } from 'jose'
import * as z from 'zod'

interface Env {
  readonly UPSTASH_REDIS_REST_URL: string
  readonly UPSTASH_REDIS_REST_TOKEN: string
  readonly ORIGIN_URL: string
  readonly JWKS: string
  readonly ISSUER: string
  readonly LIMIT: string
}

type Stack = { Bindings: Env; Variables: { claims: JWTPayload } }

const ordersQuery = z.object({
  cursor: z.string().optional(),
  limit: z.coerce.number().int().min(1).max(100).optional(),
})

let app: Hono<Stack> | undefined

export default {
  fetch(request, env, context) {
    app ??= createApp(env)
    return app.fetch(request, env, context)
  },
} satisfies ExportedHandler<Env>

function createApp(env: Env): Hono<Stack> {
  const redis = Redis.fromEnv(env)
  const limiter = Ratelimit.slidingWindow(Number(env.LIMIT), '60 s')
  const ratelimit = new Ratelimit({ redis, limiter })

  async function refuseRevoked({ jti }: JWTPayload): Promise<void> {
    if ((await redis.get(`revoked:${jti}`)) !== null) throw new HTTPException(401)
  }
  async function refuseGreedy({ sub }: JWTPayload): Promise<void> {
    const { success } = await ratelimit.limit(sub ?? '')
    if (!success) throw new HTTPException(429)
  }

  const inTurn = new Hono<Stack>()
    .use(authenticate(env))
    .use(async (c, next) => {
      await refuseRevoked(c.var.claims)
      await next()
    })
    .use(async (c, next) => {
      await refuseGreedy(c.var.claims)
      await next()
    })
    .get('/orders', requireRole('writer'), query, forward)
  const atOnce = new Hono<Stack>()
    .use(authenticate(env))
    .use(async (c, next) => {
      await Promise.all([refuseRevoked(c.var.claims), refuseGreedy(c.var.claims)])
      await next()
    })
    .get('/orders', requireRole('writer'), query, forward)
  return new Hono<Stack>().route('/in-turn', inTurn).route('/at-once', atOnce)
}

function authenticate({ JWKS, ISSUER }: Env): MiddlewareHandler<Stack> {
  const keys = createLocalJWKSet(JSON.parse(JWKS) as JSONWebKeySet)
  const options = { issuer: ISSUER, audience: ISSUER, typ: 'at+jwt', algorithms: ['ES256'] }
  return async (c, next) => {
    const [, token] = /^Bearer (\S+)$/i.exec(c.req.header('Authorization') ?? '') ?? []
    if (token === undefined) throw new HTTPException(401)
    try {
      c.set('claims', (await jwtVerify(token, keys, options)).payload)
    } catch {
      throw new HTTPException(401)
    }
    await next()
  }
}

function requireRole(role: string): MiddlewareHandler<Stack> {
  return async (c, next) => {
    const { roles } = c.var.claims
    if (!Array.isArray(roles) || !roles.includes(role)) throw new HTTPException(403)
    await next()
  }
}

const query = validator('query', (value, c) => {
  const parsed = ordersQuery.safeParse(value)
  return parsed.success ? parsed.data : c.json({ issues: parsed.error.issues }, 400)
})

function forward(c: Context<Stack>): Promise<Response> {
  const { pathname, search } = new URL(c.req.url)
  return proxy(c.env.ORIGIN_URL + pathname.slice(pathname.lastIndexOf('/')) + search, {
    raw: c.req.raw,
    headers: {
      ...c.req.header(),
      'X-Auth-Subject': c.var.claims.sub,
      Authorization: undefined,
    },
  })
}
