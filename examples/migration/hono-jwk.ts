/** An app that had `jwk()` of Hono and a rate limit of its own. */
import { Hono } from 'hono'
import { portcullis } from 'portcullis/hono'

interface Env {
  readonly ISSUER: string
  readonly UPSTASH_REDIS_REST_URL: string
  readonly UPSTASH_REDIS_REST_TOKEN: string
}

const guard = portcullis((env: Env) => ({
  issuers: [{ issuer: env.ISSUER, audience: 'https://notes.example.com' }],
  redis: { url: env.UPSTASH_REDIS_REST_URL, token: env.UPSTASH_REDIS_REST_TOKEN },
  roles: { reader: ['notes:read'] },
  limits: { standard: '100/min' },
}))

const app = new Hono()
  .use(guard)
  .get('/auth/page', guard.require('notes:read'), (c) => c.json({ sub: c.var.caller.subject }))
  .get('/about', guard.public(), (c) => c.text('about'))

export default app
