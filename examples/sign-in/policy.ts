/** A policy whose users sign in with a browser. */
import { definePolicy } from 'portcullis'
import { signIn } from 'portcullis/sign-in'

export default definePolicy({
  roles: { reader: ['orders:read'], writer: ['orders:read', 'orders:write'] },
  limits: { standard: '100/min' },
  features: [signIn()],
  routes: [
    {
      method: 'GET',
      path: '/orders',
      permission: 'orders:read',
      limits: ['standard'],
      session: 'browser',
    },
    {
      method: 'POST',
      path: '/orders',
      permission: 'orders:write',
      limits: ['standard'],
      session: { maxAgeSeconds: 3_600 },
    },
  ],
})
