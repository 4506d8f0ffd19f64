/**
 * A policy with a staleness bound: the revocation state of a cached caller is at most 500 ms old.
 */
import { definePolicy } from 'portcullis'
import { authorizationServer } from 'portcullis/authorization-server'
import { operators } from 'portcullis/operators'

export default definePolicy({
  features: [operators(), authorizationServer()],
  roles: { reader: ['orders:read'], operator: ['portcullis:*'] },
  limits: {},
  routes: [{ method: 'GET', path: '/orders', permission: 'orders:read' }],
  revocation: { maxStalenessMs: 500 },
})
