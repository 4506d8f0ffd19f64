import { clientAddressOf } from 'portcullis/fetch'
import { guard } from '../guard'

export const loader = guard
  .public()
  .handle((request, { caller }) =>
    Response.json({ caller: caller?.subject ?? null, address: clientAddressOf(request) }),
  )
