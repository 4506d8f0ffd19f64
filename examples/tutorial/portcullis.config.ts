/** The policy at the end of docs/tutorial.md: users sign in. */
import { definePolicy } from 'portcullis'
import { authorizationServer } from 'portcullis/authorization-server'
import { operators } from 'portcullis/operators'
import { signIn } from 'portcullis/sign-in'
import * as z from 'zod'

export default definePolicy({
  roles: {
    reader: ['notes:read'],
    writer: ['notes:read', 'notes:write'],
    operator: ['portcullis:*'],
  },
  // The command line needs the first two.
  features: [operators(), authorizationServer(), signIn()],
  limits: { standard: '100/min', writes: '3/min' },
  routes: [
    {
      method: 'GET',
      path: '/notes',
      permission: 'notes:read',
      limits: ['standard'],
      session: 'browser',
    },
    {
      method: 'POST',
      path: '/notes',
      permission: 'notes:write',
      limits: ['writes'],
      input: { body: z.strictObject({ text: z.string().min(1).max(100) }) },
    },
  ],
})
