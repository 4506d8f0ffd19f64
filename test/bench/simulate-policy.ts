/** Two routes with the same limit: leased units admit the callers of one of them. */
import { definePolicy } from '../../src/policy/policy.ts'
import { LEASE, LIMIT, STALENESS_MS } from './simulate-terms.ts'

const limit = { ...LIMIT, onUnavailable: 'deny' } as const
const route = { method: 'GET', permission: 'orders:read' } as const

export default definePolicy({
  roles: { reader: ['orders:read'] },
  limits: { counted: limit, leased: { ...limit, lease: LEASE } },
  routes: [
    { ...route, path: '/counted', limits: ['counted'] },
    { ...route, path: '/leased', limits: ['leased'] },
  ],
  revocation: { maxStalenessMs: STALENESS_MS },
})
