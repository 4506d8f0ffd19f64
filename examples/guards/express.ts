/** A guarded app of Express: see docs/guards.md. */
import express from 'express'
import { portcullis } from 'portcullis/express'
import { redis } from 'portcullis/redis'
import * as z from 'zod'

const guard = portcullis({
  issuers: [{ issuer: 'https://idp.example.com', audience: 'https://notes.example.com' }],
  redis: redis('redis://127.0.0.1:6379'),
  roles: { reader: ['notes:read'], writer: ['notes:read', 'notes:write'] },
  limits: { standard: '100/min', writes: '10/min' },
})
const newNote = z.strictObject({ text: z.string().max(1000) })

const app = express()
app.get('/about', guard.public(), (req, res) => res.json({ caller: req.caller?.subject ?? null }))

app.use(guard)
app.use(express.json())
app.get('/notes', guard.require('notes:read'), (req, res) =>
  res.json({ notesOf: req.caller?.subject }),
)
app.post('/notes', guard.require('notes:write').limit('writes').body(newNote), (req, res) =>
  res.status(201).json(req.body),
)
app.post('/logout', guard.authenticated(), async (req, res) => {
  await guard.revoke(req)
  res.status(204).end()
})

export default app
