/** An API that one call guards. It runs in a Worker and in Node. */
import { Hono } from 'hono'
import { portcullis } from 'portcullis/hono'
import * as z from 'zod'

export interface Env {
  readonly UPSTASH_REDIS_REST_URL: string
  readonly UPSTASH_REDIS_REST_TOKEN: string
  /** The identity provider, such as `https://me.eu.auth0.com/`. */
  readonly ISSUER: string
}

const guard = portcullis((env: Env) => ({
  issuers: [{ issuer: env.ISSUER, audience: 'https://notes.example.com' }],
  redis: { url: env.UPSTASH_REDIS_REST_URL, token: env.UPSTASH_REDIS_REST_TOKEN },
  roles: { reader: ['notes:read'], writer: ['notes:read', 'notes:write'] },
  limits: { standard: '100/min', writes: '10/min' },
}))

const newNote = z.strictObject({ text: z.string().min(1).max(1000) })
const page = z.strictObject({ limit: z.coerce.number().int().min(1).max(100).default(20) })

const app = new Hono()
  .use(guard)
  .get('/notes', guard.require('notes:read').query(page), (c) =>
    c.json({ notesOf: c.var.caller.subject, limit: c.req.valid('query').limit }),
  )
  .post('/notes', guard.require('notes:write').limit('writes').body(newNote), (c) =>
    c.json(c.req.valid('json'), 201),
  )
  .post('/logout', guard.authenticated(), async (c) => {
    await guard.revoke(c)
    return c.body(null, 204)
  })
  .get('/about', guard.public(), (c) => c.json({ caller: c.var.caller?.subject ?? null }))

export type App = typeof app
export default app
