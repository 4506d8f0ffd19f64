import * as z from 'zod'
import { guard } from '../guard'
import { notesOf } from '../notes'

const index = z.strictObject({ id: z.coerce.number().int().min(0) })

export const loader = guard
  .require('notes:read')
  .params(index)
  .handle((_request, { caller, valid }) =>
    Response.json({ note: notesOf(caller.subject)[valid.params.id] ?? null }),
  )
