import * as z from 'zod'
import { guard } from '../../lib/guard'
import { addNote, notesOf } from '../../lib/notes'

const newNote = z.strictObject({ text: z.string().min(1).max(1000) })
const page = z.strictObject({ limit: z.coerce.number().int().min(1).max(100).default(20) })

export const GET = guard
  .require('notes:read')
  .query(page)
  .handle((_request, { caller, valid }) =>
    Response.json({ notes: notesOf(caller.subject).slice(0, valid.query.limit) }),
  )

export const POST = guard
  .require('notes:write')
  .limit('writes')
  .body(newNote)
  .handle((_request, { caller, valid }) =>
    Response.json({ note: addNote(caller.subject, valid.body.text) }, { status: 201 }),
  )
