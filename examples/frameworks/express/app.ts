/** A guarded app of Express 4 or 5: see docs/guards.md. */
import express, { type Request, type Response } from 'express'
import { clientAddressOf, portcullis } from 'portcullis/express'
import { redis } from 'portcullis/redis'
import * as z from 'zod'
import { addNote, notesOf } from './notes.ts'

const { ISSUER, REDIS_URL = 'redis://127.0.0.1:6379', PORT = '3000' } = process.env

const guard = portcullis({
  issuers: [{ issuer: ISSUER, audience: 'https://notes.example.com' }],
  redis: redis(REDIS_URL),
  roles: { reader: ['notes:read'], writer: ['notes:read', 'notes:write'] },
  limits: { standard: '100/min', writes: '10/min' },
})
const newNote = z.strictObject({ text: z.string().min(1).max(1000) })
const page = z.strictObject({ limit: z.coerce.number().int().min(1).max(100).default(20) })
const index = z.strictObject({ id: z.coerce.number().int().min(0) })

const app = express()
app.get('/about', guard.public(), (req: Request, res: Response) => {
  res.json({ caller: req.caller?.subject ?? null, address: clientAddressOf(req) })
})

app.use(guard)
app.use(express.json())
app.get('/mine', (req: Request, res: Response) => {
  res.json({ caller: req.caller?.subject })
})
app.get(
  '/notes',
  guard
    .require('notes:read')
    .query(page)
    .handle<Request, Response>(({ caller, valid }, res) =>
      res.json({ notes: notesOf(caller.subject).slice(0, valid.query.limit) }),
    ),
)
app.get(
  '/notes/:id',
  guard
    .require('notes:read')
    .params(index)
    .handle<Request, Response>(({ caller, valid }, res) =>
      res.json({ note: notesOf(caller.subject)[valid.params.id] ?? null }),
    ),
)
app.post(
  '/notes',
  guard
    .require('notes:write')
    .limit('writes')
    .body(newNote)
    .handle<Request, Response>(({ caller, valid }, res) =>
      res.status(201).json({ note: addNote(caller.subject, valid.body.text) }),
    ),
)
app.post(
  '/logout',
  guard.authenticated().handle<Request, Response>(async (req, res) => {
    await guard.revoke(req)
    res.status(204).end()
  }),
)

app.listen(Number(PORT), '127.0.0.1', () => console.log(`Listening on port ${PORT}`))
