/** Routes that leave credentials of some schemes to the origin. */
import { definePolicy } from '../../../src/policy/policy.ts'

const SCHEMES = ['Basic', 'Digest', 'AWS4-HMAC-SHA256'] as const

/** Returns the policy, with or without tokens in other places than `Authorization`. */
export function unverifiedPolicy(sources: boolean) {
  const anonymous = { method: 'GET', anonymous: true, forwardAuthorization: SCHEMES } as const
  return definePolicy({
    roles: {},
    limits: {
      all: { limit: 1_000, windowSeconds: 60, by: 'address', onUnavailable: 'allow' },
      tried: {
        limit: 1_000,
        windowSeconds: 60,
        by: 'address',
        onUnavailable: 'deny',
        mode: 'observe',
      },
    },
    routes: [
      { ...anonymous, path: '/own' },
      { ...anonymous, path: '/limited', limits: ['all'] },
      { ...anonymous, path: '/observed', limits: ['tried'] },
    ],
    abuse: { bans: { violations: 1 } },
    ...(sources && {
      tokens: {
        sources: [{ header: 'Authorization' }, { header: 'X-Token' }, { cookie: '__Host-token' }],
      },
    }),
  })
}
