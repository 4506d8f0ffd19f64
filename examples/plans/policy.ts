/** An API that is sold with plans, for callers with API keys. docs/api-keys.md shows it in parts. */
import { definePolicy } from 'portcullis'
import { authorizationServer } from 'portcullis/authorization-server'
import { operators } from 'portcullis/operators'
import { plans } from 'portcullis/plans'

export default definePolicy({
  roles: { customer: ['orders:read'], operator: ['portcullis:*'] },
  // The command line needs both.
  features: [operators(), authorizationServer()],
  tokens: { sources: [{ header: 'Authorization' }, { header: 'X-API-Key' }] },
  limits: {
    plan: plans({
      plans: {
        free: { rate: '60/min', perDay: 1_000, concurrency: 2 },
        pro: { rate: '600/min', perDay: 100_000, perMonth: 1_000_000, concurrency: 20 },
      },
      default: 'free',
      planBy: ['key'],
    }),
  },
  routes: [{ method: 'GET', path: '/orders', permission: 'orders:read', limits: ['plan'] }],
})
