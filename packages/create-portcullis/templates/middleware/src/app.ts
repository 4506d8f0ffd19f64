/** The app: its routes, and what each of them requires. */
import { Hono } from 'hono'
import { portcullis } from 'portcullis/hono'
import * as z from 'zod'

interface Env {
  /** JSON: the identity providers whose access tokens are accepted. */
  readonly ISSUERS?: string
  readonly UPSTASH_REDIS_REST_URL: string
  readonly UPSTASH_REDIS_REST_TOKEN: string
}

const newNote = z.strictObject({ text: z.string().min(1).max(10_000) })

const guard = portcullis((env: Env) => ({
  issuers: JSON.parse(env.ISSUERS ?? '[]'),
  redis: { url: env.UPSTASH_REDIS_REST_URL, token: env.UPSTASH_REDIS_REST_TOKEN },
  roles: { reader: ['notes:read'], writer: ['notes:read', 'notes:write'] },
  limits: { standard: '100/min' },
}))

// Every route behind the guard needs a valid token; `guard.public()` opens one.
const app = new Hono()
  .use(guard)
  .get('/health', guard.public(), (c) => c.json({ ok: true }))
  .get('/notes', guard.require('notes:read'), (c) => c.json({ notesOf: c.var.caller.subject }))
  .post('/notes', guard.require('notes:write').body(newNote), (c) =>
    c.json(c.req.valid('json'), 201),
  )

export default app
