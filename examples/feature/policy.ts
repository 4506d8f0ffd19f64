/** A policy with a feature of one's own. */
import { definePolicy } from 'portcullis'
import { openapi } from 'portcullis/openapi'
import { operators } from 'portcullis/operators'
import { changeFreeze } from './change-freeze.ts'

export default definePolicy({
  roles: {
    editor: ['notes:read', 'notes:write'],
    operator: ['portcullis:*'],
    release: ['portcullis:change-freeze:*'],
  },
  limits: {
    standard: { limit: 100, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
    anonymous: { limit: 60, windowSeconds: 60, by: 'address', onUnavailable: 'deny' },
  },
  features: [operators(), openapi(), changeFreeze()],
  routes: [
    { method: 'GET', path: '/notes', permission: 'notes:read', limits: ['standard'] },
    { method: 'POST', path: '/notes', permission: 'notes:write', limits: ['standard'] },
  ],
})
