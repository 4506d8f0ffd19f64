/** Routes with open streams. One second between a revocation and the end keeps the tests short. */
import { mcp } from '../../src/features/mcp/index.ts'
import { quotas } from '../../src/features/plans/index.ts'
import { definePolicy } from '../../src/policy/policy.ts'

const checked = { permission: 'events:read', recheckSeconds: 1, recheckGraceSeconds: 3 } as const
const get = { method: 'GET' } as const

/** Failed credentials of an address until it is refused. */
export const MAX_FAILURES = 5

export const streamPolicy = (maxStalenessMs = 0) =>
  definePolicy({
    roles: { reader: ['events:read'] },
    limits: { one: quotas({ concurrency: 1, by: 'subject', slotSeconds: 5 }) },
    abuse: { bans: false, authenticationFailures: { limit: MAX_FAILURES } },
    routes: [
      { ...get, ...checked, path: '/events' },
      { ...get, ...checked, path: '/files/:name' },
      { ...get, ...checked, path: '/late' },
      { method: 'POST', ...checked, path: '/late' },
      { ...get, ...checked, path: '/impatient/late', recheckGraceSeconds: 0 },
      { method: 'POST', ...checked, path: '/impatient/late', recheckGraceSeconds: 0 },
      { ...get, ...checked, path: '/finish/:name', finishDownloads: true },
      { ...get, ...checked, path: '/slot/events', limits: ['one'] },
      { ...get, ...checked, path: '/never/events', recheckSeconds: 0 },
      { ...get, permission: 'events:read', path: '/default/events' },
      { ...get, permission: 'events:read', path: '/two/events', recheckSeconds: 2 },
      { ...get, ...checked, path: '/recent/:name', authentication: { maxAgeSeconds: 60 } },
      { ...get, anonymous: true, path: '/public/events', recheckSeconds: 1 },
      ...mcp({ ...checked, path: '/mcp', tools: { wait: true } }),
    ],
    revocation: { maxStalenessMs },
  })
