/** A policy whose gateways receive signals. */
import { signals } from '../../../src/features/signals/index.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { ISSUER, REMOTE_ISSUER } from '../../harness/issuer.ts'
import { EVENT_AUDIENCE } from './transmitter.ts'

type Definition = Parameters<typeof signals>[0]

export const TRANSMITTERS: Definition['transmitters'] = [
  { issuer: ISSUER, audience: EVENT_AUDIENCE },
]

export { ISSUER, REMOTE_ISSUER }

/** `transmitters` as a user writes them. Callers have the role `reader`. */
export const signalPolicy = (
  transmitters: Definition['transmitters'] = TRANSMITTERS,
  maxStalenessMs = 0,
) =>
  definePolicy({
    roles: { reader: ['orders:read'] },
    limits: { standard: '100000/min' },
    revocation: { maxStalenessMs },
    features: [signals({ transmitters })],
    routes: [
      { method: 'GET', path: '/orders', permission: 'orders:read', limits: ['standard'] },
      {
        method: 'GET',
        path: '/events',
        permission: 'orders:read',
        limits: ['standard'],
        recheckSeconds: 1,
      },
    ],
  })
