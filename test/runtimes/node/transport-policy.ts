/** Routes for tests of connections that end, stall or break off. */
import { definePolicy } from '../../../src/policy/policy.ts'

export default definePolicy({
  roles: { reader: ['orders:read'] },
  limits: {
    wide: { limit: 1_000_000, windowSeconds: 60, by: 'address', onUnavailable: 'deny' },
  },
  clientStallSeconds: 1,
  maxOpenResponses: 20,
  routes: [
    {
      method: 'POST',
      path: '/patient-uploads',
      anonymous: true,
      limits: ['wide'],
      originTimeoutMs: 60_000,
    },
    {
      method: 'GET',
      path: '/downloads/:id',
      anonymous: true,
      limits: ['wide'],
      originTimeoutMs: 1_000,
    },
    {
      method: 'POST',
      path: '/uploads/:id',
      anonymous: true,
      limits: ['wide'],
      maxBodyBytes: 4_194_304,
      originTimeoutMs: 1_000,
    },
    {
      method: 'GET',
      path: '/sockets',
      anonymous: true,
      limits: ['wide'],
      originTimeoutMs: 1_000,
      webSocketOrigins: ['https://app.test'],
    },
  ],
})
