/** The guarded app that every runtime serves. Its options are a function of the environment. */
import { Hono } from 'hono'
import * as z from 'zod'
import { clientAddressOf, type GuardOptions, portcullis } from '../../src/hono/index.ts'

export interface Variables {
  readonly REDIS_URL: string
  readonly ISSUER: string
  readonly JWKS: string
  readonly UPSTASH_REDIS_REST_URL: string
  readonly UPSTASH_REDIS_REST_TOKEN: string
}

const newNote = z.strictObject({ text: z.string() })

export function createApp(redisOf: (env: Variables) => GuardOptions['redis']) {
  const guard = portcullis((env: Variables) => ({
    issuers: [{ issuer: env.ISSUER, audience: 'https://api.test', jwks: JSON.parse(env.JWKS) }],
    redis: redisOf(env),
    roles: { reader: ['notes:read'], writer: ['notes:*'] },
    limits: { few: '1/h' },
    audit: { record() {} },
  }))
  const app = new Hono().use(guard)
  app.get('/open', guard.public(), (c) => c.text(clientAddressOf(c)))
  app.get('/few', guard.authenticated().limit('few'), (c) => c.text('in'))
  app.get('/notes', guard.require('notes:read'), (c) => c.text('in'))
  app.post('/notes', guard.require('notes:write').body(newNote), (c) => c.json(c.req.valid('json')))
  app.post('/logout', guard.authenticated(), async (c) => {
    await guard.revoke(c)
    return c.body(null, 204)
  })
  return app
}

export const app = createApp((env) => ({
  url: env.UPSTASH_REDIS_REST_URL,
  token: env.UPSTASH_REDIS_REST_TOKEN,
  timeoutMs: 5_000,
}))
