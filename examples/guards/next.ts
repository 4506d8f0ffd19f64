/** A guarded route of Next: see docs/guards.md. */
import { portcullis } from 'portcullis/fetch'
import * as z from 'zod'

const guard = portcullis((env: Readonly<Record<string, string | undefined>>) => ({
  issuers: [{ issuer: 'https://idp.example.com', audience: 'https://notes.example.com' }],
  redis: { url: env.UPSTASH_REDIS_REST_URL, token: env.UPSTASH_REDIS_REST_TOKEN },
  roles: { reader: ['notes:read'] },
  // Safe only if a proxy in front overwrites this header. Otherwise a client chooses its address.
  clientAddress: (request) => request.headers.get('x-real-ip') ?? undefined,
}))

// Next: app/notes/[id]/route.ts
export const GET = guard
  .require('notes:read')
  .params(z.strictObject({ id: z.coerce.number() }))
  .handle((_request, { caller, valid }) =>
    Response.json({ id: valid.params.id, of: caller.subject }),
  )
