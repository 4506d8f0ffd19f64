/** What is allowed: roles, limits and routes. A route that is not in the table does not exist. */
import { definePolicy } from 'portcullis'
import { authorizationServer } from 'portcullis/authorization-server'
import { operators } from 'portcullis/operators'
import * as z from 'zod/mini'

const newNote = z.strictObject({
  text: z.string().check(z.minLength(1), z.maxLength(10_000)),
})

export default definePolicy({
  roles: {
    reader: ['notes:read'],
    writer: ['notes:read', 'notes:write'],
    operator: ['portcullis:*'],
  },
  limits: {
    standard: { limit: 100, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
  },
  routes: [
    { method: 'GET', path: '/notes', permission: 'notes:read', limits: ['standard'] },
    {
      method: 'POST',
      path: '/notes',
      permission: 'notes:write',
      limits: ['standard'],
      input: { body: newNote },
    },
  ],
  // The command line (`npx portcullis`) needs both.
  // openapi() from 'portcullis/openapi' adds a page about all calls, at /-/docs.
  features: [operators(), authorizationServer()],
})
