/** Revocations outlive what they cover. */
import { expect, test } from 'vitest'
import { signIn } from '../../src/features/sign-in/index.ts'
import { longestLifeSeconds } from '../../src/gateway/longest-life.ts'
import { definePolicy } from '../../src/policy/policy.ts'

const DAY_SECONDS = 86_400

test('a cutoff is stored for longer than a browser session lives', () => {
  const policy = definePolicy({
    roles: { reader: ['orders:read'] },
    limits: { standard: '100/min' },
    features: [signIn({ absoluteSeconds: 30 * DAY_SECONDS })],
    routes: [{ method: 'GET', path: '/', permission: 'orders:read', limits: ['standard'] }],
  })
  const { token, access } = longestLifeSeconds(policy, { issuers: [] })
  expect(access).toBeGreaterThan(30 * DAY_SECONDS)
  expect(token).toBeLessThan(2 * DAY_SECONDS)
})
