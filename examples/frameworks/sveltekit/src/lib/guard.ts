/** The guard of the routes: see docs/guards.md. */
import { portcullis } from 'portcullis/fetch'
import { redis } from 'portcullis/redis'

const { ISSUER, REDIS_URL = 'redis://127.0.0.1:6379' } = process.env
const store = redis(REDIS_URL)
// Otherwise the open socket keeps the process alive.
process.once('sveltekit:shutdown', () => store.close())

export const guard = portcullis(() => ({
  issuers: [{ issuer: ISSUER, audience: 'https://notes.example.com' }],
  redis: store,
  roles: { reader: ['notes:read'], writer: ['notes:read', 'notes:write'] },
  limits: { standard: '100/min', writes: '10/min' },
}))
