/** Shared signals of a provider that cannot reach the gateway. docs/signals.md shows a part. */
import { definePolicy } from 'portcullis'
import { signals } from 'portcullis/signals'

export default definePolicy({
  roles: { employee: ['orders:read'] },
  limits: { standard: '100/min' },
  features: [
    signals({
      transmitters: [
        {
          issuer: 'https://idp.example.com',
          audience: 'https://api.example.com',
          poll: { url: 'https://idp.example.com/ssf/poll', everySeconds: 30 },
        },
      ],
    }),
  ],
  routes: [{ method: 'GET', path: '/orders', permission: 'orders:read', limits: ['standard'] }],
})
