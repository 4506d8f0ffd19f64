/** A caller whom an isolate has found good is asked about again after 500 ms, at the latest. */
import { definePolicy } from 'portcullis'

export default definePolicy({
  roles: { reader: ['orders:read'], operator: ['portcullis:*'] },
  limits: {},
  routes: [{ method: 'GET', path: '/orders', permission: 'orders:read' }],
  revocation: { maxStalenessMs: 500 },
})
