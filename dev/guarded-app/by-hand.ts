/** The app of `examples/hono`, with verification and limits by hand: no revocation, bans or audit events. */
import { Ratelimit } from '@upstash/ratelimit'
import { Redis } from '@upstash/redis/cloudflare'
import { type Context, Hono, type Next } from 'hono'
import { createRemoteJWKSet, type JWTPayload, jwtVerify } from 'jose'
import * as z from 'zod'

interface Env {
  readonly UPSTASH_REDIS_REST_URL: string
  readonly UPSTASH_REDIS_REST_TOKEN: string
  readonly ISSUER: string
}

type App = { Bindings: Env; Variables: { payload: JWTPayload } }

const keys = new Map<string, ReturnType<typeof createRemoteJWKSet>>()
const limiters = new Map<string, Ratelimit>()
const GRANTS: Readonly<Record<string, readonly string[]>> = {
  reader: ['notes:read'],
  writer: ['notes:read', 'notes:write'],
}

function limiterOf(env: Env, name: string, perMinute: number): Ratelimit {
  const redis = new Redis({
    url: env.UPSTASH_REDIS_REST_URL,
    token: env.UPSTASH_REDIS_REST_TOKEN,
  })
  const limiter = new Ratelimit({ redis, limiter: Ratelimit.slidingWindow(perMinute, '1 m') })
  limiters.set(name, limiter)
  return limiter
}

const requires = (permission: string, name = 'standard', perMinute = 100) =>
  async function guard(c: Context<App>, next: Next) {
    const { env } = c
    const token = c.req.header('Authorization')?.replace(/^Bearer /, '') ?? ''
    const keySet = keys.get(env.ISSUER) ?? createRemoteJWKSet(new URL('jwks', env.ISSUER))
    keys.set(env.ISSUER, keySet)
    try {
      const { payload } = await jwtVerify(token, keySet, {
        issuer: env.ISSUER,
        audience: 'https://notes.example.com',
      })
      c.set('payload', payload)
    } catch {
      return c.json({ code: 'invalid_token' }, 401)
    }
    const { sub = '', roles } = c.var.payload
    const granted = [roles].flat().flatMap((role) => GRANTS[String(role)] ?? [])
    if (!granted.includes(permission)) return c.json({ code: 'insufficient_permission' }, 403)
    const limiter = limiters.get(name) ?? limiterOf(env, name, perMinute)
    if (!(await limiter.limit(sub)).success) return c.json({ code: 'rate_limited' }, 429)
    return next()
  }

const newNote = z.strictObject({ text: z.string().min(1).max(1000) })
const page = z.strictObject({ limit: z.coerce.number().int().min(1).max(100).default(20) })

export default new Hono<App>()
  .get('/notes', requires('notes:read'), (c) => {
    const { limit } = page.parse(c.req.query())
    return c.json({ notesOf: c.var.payload.sub, limit })
  })
  .post('/notes', requires('notes:write', 'writes', 10), async (c) =>
    c.json(newNote.parse(await c.req.json()), 201),
  )
