/** The guard of the routes: see docs/guards.md. */
import { portcullis } from 'portcullis/fetch'

export const guard = portcullis((env: Readonly<Record<string, string | undefined>>) => ({
  issuers: [{ issuer: env.ISSUER, audience: 'https://notes.example.com' }],
  redis: { url: env.UPSTASH_REDIS_REST_URL, token: env.UPSTASH_REDIS_REST_TOKEN },
  roles: { reader: ['notes:read'], writer: ['notes:read', 'notes:write'] },
  limits: { standard: '100/min', writes: '10/min' },
  // Safe only if a proxy in front overwrites this header. Otherwise a client chooses its address.
  clientAddress: (request) => request.headers.get('x-real-ip') ?? undefined,
}))
