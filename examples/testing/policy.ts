/** A policy for notes, which `policy.test.ts` tests. */
import { definePolicy } from 'portcullis'
import * as z from 'zod'

export default definePolicy({
  roles: {
    reader: ['notes:read'],
    writer: ['notes:read', 'notes:write'],
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
      input: { body: z.strictObject({ text: z.string().min(1) }) },
    },
  ],
})
