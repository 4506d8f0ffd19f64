/** The policy at the beginning of docs/tutorial.md. */
import { definePolicy } from 'portcullis'
import { authorizationServer } from 'portcullis/authorization-server'
import { operators } from 'portcullis/operators'
import * as z from 'zod'

export default definePolicy({
  roles: {
    reader: ['notes:read'],
    writer: ['notes:read', 'notes:write'],
    operator: ['portcullis:*'],
  },
  // The command line needs both.
  features: [operators(), authorizationServer()],
  limits: { standard: '100/min', writes: '3/min' },
  routes: [
    { method: 'GET', path: '/notes', permission: 'notes:read', limits: ['standard'] },
    {
      method: 'POST',
      path: '/notes',
      permission: 'notes:write',
      limits: ['writes'],
      input: { body: z.strictObject({ text: z.string().min(1).max(100) }) },
    },
  ],
})
