/** A policy with routes for browsers. */

import { origins } from '../../../src/features/origins/index.ts'
import { quotas } from '../../../src/features/plans/index.ts'
import type { SignInDefinition } from '../../../src/features/sign-in/definition.ts'
import { signIn } from '../../../src/features/sign-in/index.ts'
import type { PolicyDefinition } from '../../../src/policy/definition.ts'
import { group } from '../../../src/policy/group.ts'
import { definePolicy } from '../../../src/policy/policy.ts'

const routesOfHosts = group(
  { permission: 'orders:read', limits: ['standard'], session: 'browser' },
  [
    { host: 'shop.localhost', method: 'GET', path: '/cart' },
    { host: 'shop.localhost', method: 'POST', path: '/cart' },
    { host: 'shop.localhost', method: 'GET', path: '/safe', authentication: { acr: ['mfa'] } },
    { host: '*.apps.localhost', method: 'GET', path: '/cart' },
  ],
)

/** Routes whose paths say what they need. */
export function policyFor(
  definition: SignInDefinition = {},
  rest: Pick<
    PolicyDefinition<string, string>,
    'maxTokenBytes' | 'maxHeaderBytes' | 'tokens' | 'identityHeaders'
  > & { readonly hosts?: boolean } = {},
) {
  const { hosts = false, ...fields } = rest
  const browser = { limits: ['standard'], session: 'browser' } as const
  return definePolicy({
    ...fields,
    ...(hosts && { origins: origins({ other: { url: 'http://127.0.0.1:9' } }) }),
    roles: { reader: ['orders:read', 'orders:write'], auditor: ['audit:read'] },
    limits: {
      standard: '1000/min',
      inFlight: quotas({ concurrency: 100, slotSeconds: 3_600 }),
      perAddress: { limit: 1_000, windowSeconds: 60, by: 'address', onUnavailable: 'deny' },
      seats: quotas({ concurrency: 2, slotSeconds: 3_600, by: 'address' }),
    },
    features: [signIn({ requestsPerMinute: 10_000, ...definition })],
    routes: [
      { method: 'GET', path: '/', permission: 'orders:read', ...browser },
      { method: 'GET', path: '/orders', permission: 'orders:read', ...browser },
      { method: 'GET', path: '/orders/:id', permission: 'orders:read', ...browser },
      { method: 'GET', path: '/events', permission: 'orders:read', ...browser, recheckSeconds: 1 },
      { method: 'POST', path: '/orders', permission: 'orders:write', ...browser },
      { method: 'GET', path: '/audit', permission: 'audit:read', ...browser },
      {
        method: 'GET',
        path: '/cookies',
        permission: 'orders:read',
        ...browser,
        forwardCookies: true,
      },
      {
        method: 'GET',
        path: '/strong',
        permission: 'orders:read',
        limits: ['standard', 'inFlight'],
        session: { acr: ['mfa'] },
      },
      {
        method: 'GET',
        path: '/recent',
        permission: 'orders:read',
        limits: ['standard'],
        session: { maxAgeSeconds: 60 },
      },
      { method: 'GET', path: '/tokens-only', permission: 'orders:read', limits: ['standard'] },
      { method: 'GET', path: '/open', anonymous: true },
      {
        method: 'GET',
        path: '/welcome',
        anonymous: true,
        session: 'optional',
        limits: ['perAddress', 'seats'],
      },
      { method: 'POST', path: '/welcome', anonymous: true, session: 'optional' },
      ...(hosts ? routesOfHosts : []),
    ],
  })
}
