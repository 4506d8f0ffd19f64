/** One route with one limit. `STRICT=1`: no leases, and each request reads revocations. */
import { definePolicy } from '../../src/policy/policy.ts'
import { LEASE, LIMIT, STALENESS_MS } from './simulate-terms.ts'

const isStrict = process.env.STRICT === '1'

export default definePolicy({
  roles: { reader: ['orders:read'] },
  limits: {
    callers: { ...LIMIT, onUnavailable: 'deny', ...(!isStrict && { lease: LEASE }) },
  },
  routes: [{ method: 'GET', path: '/orders', permission: 'orders:read', limits: ['callers'] }],
  revocation: { maxStalenessMs: isStrict ? 0 : STALENESS_MS },
})
