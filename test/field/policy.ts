/** The policy of the gateways that try the cases of the table. */
import * as z from 'zod'
import { definePolicy } from '../../src/policy/policy.ts'

export default definePolicy({
  roles: { reader: ['notes:read'], writer: ['notes:read', 'notes:write'] },
  limits: {
    generous: '10000/min',
    seldom: '2/min',
    anonymous: { limit: 10_000, windowSeconds: 60, by: 'address', onUnavailable: 'allow' },
  },
  abuse: { bans: false, authenticationFailures: false },
  routes: [
    { method: 'GET', path: '/notes', permission: 'notes:read', limits: ['generous'] },
    { method: 'GET', path: '/seldom', permission: 'notes:read', limits: ['seldom'] },
    { method: 'POST', path: '/notes', permission: 'notes:write', limits: ['generous'] },
    {
      method: 'POST',
      path: '/typed',
      permission: 'notes:write',
      limits: ['generous'],
      input: { body: z.strictObject({ text: z.string() }) },
    },
    {
      method: 'POST',
      path: '/counted',
      anonymous: true,
      limits: ['anonymous'],
      input: { body: z.record(z.string(), z.number()) },
    },
    {
      method: 'GET',
      path: '/queried',
      anonymous: true,
      limits: ['anonymous'],
      input: { query: z.strictObject({ a: z.string().optional() }) },
    },
    {
      method: 'GET',
      path: '/headed',
      anonymous: true,
      limits: ['anonymous'],
      input: { headers: z.looseObject({ 'x-mode': z.literal('dry-run') }) },
    },
    {
      method: 'GET',
      path: '/own-basic',
      anonymous: true,
      limits: ['anonymous'],
      forwardAuthorization: ['Basic'],
    },
    {
      method: 'GET',
      path: '/impatient',
      anonymous: true,
      limits: ['anonymous'],
      originTimeoutMs: 300,
    },
    { method: 'GET', path: '/open/*', anonymous: true, limits: ['anonymous'] },
    { method: 'POST', path: '/open/*', anonymous: true, limits: ['anonymous'] },
    { method: 'PUT', path: '/open/*', anonymous: true, limits: ['anonymous'] },
  ],
})
