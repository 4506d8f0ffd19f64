import { guard } from '../lib/guard'

export const GET = guard
  .authenticated()
  .handle((_request, { caller }) => Response.json({ caller: caller.subject }))
