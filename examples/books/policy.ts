/** Policy of the books API: readers may read, at most twice a second on average. */
import { definePolicy } from 'portcullis'
import { authorizationServer } from 'portcullis/authorization-server'
import { operators } from 'portcullis/operators'
import * as z from 'zod'

const bookParams = z.strictObject({ id: z.string().regex(/^[1-9]\d{0,8}$/, 'a whole number') })

export default definePolicy({
  roles: {
    reader: ['books:read'],
    librarian: ['books:*'],
    operator: ['portcullis:*'],
  },
  // The command line needs both.
  features: [operators(), authorizationServer()],
  limits: {
    standard: { limit: 120, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
  },
  routes: [
    { method: 'GET', path: '/books', permission: 'books:read', limits: ['standard'] },
    {
      method: 'GET',
      path: '/books/:id',
      permission: 'books:read',
      limits: ['standard'],
      input: { params: bookParams },
    },
    {
      method: 'DELETE',
      path: '/books/:id',
      permission: 'books:delete',
      limits: ['standard'],
      input: { params: bookParams },
      maxBodyBytes: 0,
    },
  ],
})
