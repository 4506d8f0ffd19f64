import { clientAddressOf } from 'portcullis/fetch'
import { guard } from '../lib/guard'

export const GET = guard
  .public()
  .handle((request, { caller }) =>
    Response.json({ caller: caller?.subject ?? null, address: clientAddressOf(request) }),
  )
