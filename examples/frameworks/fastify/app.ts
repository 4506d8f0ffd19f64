/** A guarded app of Fastify: see docs/guards.md. */
import Fastify from 'fastify'
import { clientAddressOf, portcullis } from 'portcullis/express'
import { redis } from 'portcullis/redis'
import * as z from 'zod'
import { guardRoutes } from './guard-routes.ts'
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

const app = Fastify()
guardRoutes(app, guard.authenticated())

app.get('/about', { config: { guard: guard.public() } }, ({ raw }) => ({
  caller: raw.caller?.subject ?? null,
  address: clientAddressOf(raw),
}))
app.get('/mine', ({ raw }) => ({ caller: raw.caller?.subject }))
app.get('/notes', { config: { guard: guard.require('notes:read').query(page) } }, ({ raw }) => {
  const { query } = raw.valid as { readonly query: z.infer<typeof page> }
  return { notes: notesOf(raw.caller?.subject ?? '').slice(0, query.limit) }
})
app.get(
  '/notes/:id',
  { config: { guard: guard.require('notes:read').params(index) } },
  ({ raw }) => {
    const { params } = raw.valid as { readonly params: z.infer<typeof index> }
    return { note: notesOf(raw.caller?.subject ?? '')[params.id] ?? null }
  },
)
app.post(
  '/notes',
  { config: { guard: guard.require('notes:write').limit('writes').body(newNote) } },
  ({ raw }, reply) => {
    const { body } = raw.valid as { readonly body: z.infer<typeof newNote> }
    return reply.code(201).send({ note: addNote(raw.caller?.subject ?? '', body.text) })
  },
)
app.post('/logout', async ({ raw }, reply) => {
  await guard.revoke(raw)
  return reply.code(204).send()
})

await app.listen({ port: Number(PORT), host: '127.0.0.1' })
console.log(`Listening on port ${PORT}`)
