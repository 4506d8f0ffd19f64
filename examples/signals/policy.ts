/** An API whose identity provider reports revoked sessions and disabled accounts. docs/signals.md shows it. */
import { definePolicy } from 'portcullis'
import { signals } from 'portcullis/signals'

export default definePolicy({
  roles: { employee: ['orders:read'] },
  limits: { standard: '100/min' },
  features: [
    signals({
      transmitters: [
        {
          issuer: 'https://example.okta.com',
          audience: 'https://api.example.com',
          subjectsOf: ['https://example.okta.com/oauth2/default'],
          events: { 'credential-change': 'cutoff' },
        },
      ],
    }),
  ],
  routes: [{ method: 'GET', path: '/orders', permission: 'orders:read', limits: ['standard'] }],
})
