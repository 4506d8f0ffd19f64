/** A guard on Node over a Redis of your own: see docs/middleware.md. */
import { portcullis } from 'portcullis/hono'
import { redis } from 'portcullis/redis'

export const guard = portcullis({
  issuers: [{ issuer: 'https://idp.example.com', audience: 'https://notes.example.com' }],
  redis: redis('redis://127.0.0.1:6379'),
  roles: { reader: ['notes:read'] },
})
