/** The policy of the tests about what counts towards a ban, and what a ban refuses. */
import type { BanDefinition } from '../../../src/access/abuse/definition.ts'
import { signatures } from '../../../src/features/signatures/index.ts'
import { definePolicy } from '../../../src/index.ts'

export const VIOLATIONS = 3
/** Refused credentials of an address, or of a subject at an address, before its next ones are throttled. */
export const FAILURES = 6

export const policyFor = (refuses: BanDefinition['refuses']) =>
  definePolicy({
    roles: { reader: ['orders:read'] },
    limits: {
      open: { limit: 1_000, windowSeconds: 3_600, by: 'address', onUnavailable: 'deny' },
      standard: { limit: 1_000, windowSeconds: 3_600, by: 'subject', onUnavailable: 'deny' },
    },
    abuse: {
      authenticationFailures: { limit: FAILURES, windowSeconds: 3_600 },
      bans: { violations: VIOLATIONS, ...(refuses && { refuses }) },
    },
    routes: [
      { method: 'GET', path: '/orders', permission: 'orders:read', limits: ['standard'] },
      { method: 'GET', path: '/bound', permission: 'orders:read', dpop: true },
      { method: 'GET', path: '/open', anonymous: true, limits: ['open'] },
      {
        method: 'GET',
        path: '/search',
        anonymous: true,
        limits: ['open'],
        inspect: { signatures: signatures({ mode: 'enforce' }) },
      },
    ],
  })
