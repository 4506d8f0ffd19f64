/**
 * A policy with a staleness bound: the revocation state of a cached caller is at most 500 ms old.
 */
import { definePolicy } from 'portcullis'

export default definePolicy({
  roles: { reader: ['orders:read'], operator: ['portcullis:*'] },
  limits: {},
  routes: [{ method: 'GET', path: '/orders', permission: 'orders:read' }],
  revocation: { maxStalenessMs: 500 },
})
