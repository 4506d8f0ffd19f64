import { guard } from '../lib/guard'

export const POST = guard.authenticated().handle(async (request) => {
  await guard.revoke(request)
  return new Response(null, { status: 204 })
})
