/** Policy of the notes API in the guide of Node: who may read, who may write, and what a note is. */
import { definePolicy } from 'portcullis'
import { authorizationServer } from 'portcullis/authorization-server'
import { operators } from 'portcullis/operators'
import * as z from 'zod'

export default definePolicy({
  roles: {
    reader: ['notes:read'],
    editor: ['notes:read', 'notes:write'],
    operator: ['portcullis:*'],
  },
  // The command line needs both.
  features: [operators(), authorizationServer()],
  limits: { standard: '100/min' },
  routes: [
    { method: 'GET', path: '/notes', permission: 'notes:read', limits: ['standard'] },
    {
      method: 'POST',
      path: '/notes',
      permission: 'notes:write',
      limits: ['standard'],
      input: { body: z.strictObject({ text: z.string().min(1).max(1000) }) },
    },
  ],
})
