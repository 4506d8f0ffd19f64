import { guard } from '../guard'

export const loader = guard
  .authenticated()
  .handle((_request, { caller }) => Response.json({ caller: caller.subject }))
