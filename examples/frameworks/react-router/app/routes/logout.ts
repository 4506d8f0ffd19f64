import { guard } from '../guard'

export const action = guard.authenticated().handle(async (request) => {
  await guard.revoke(request)
  return new Response(null, { status: 204 })
})
