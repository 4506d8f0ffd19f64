/** A policy with its issuers: see docs/issuers.md. */
import { defineIssuers, definePolicy } from 'portcullis'

const issuers = defineIssuers([
  { preset: 'auth0', issuer: 'https://example.eu.auth0.com/', audience: 'https://api.example.com' },
])

export default definePolicy({
  issuers,
  roles: { reader: ['notes:read'] },
  limits: { standard: '100/min' },
  routes: [{ method: 'GET', path: '/notes', permission: 'notes:read', limits: ['standard'] }],
})
