/** A site whose users sign in, with the headers that oauth2-proxy sends to its upstream. */
import { definePolicy } from 'portcullis'
import { signIn } from 'portcullis/sign-in'

export default definePolicy({
  roles: { staff: ['site:use'] },
  limits: { standard: '600/min' },
  features: [signIn()],
  identityHeaders: 'oauth2-proxy',
  routes: [
    {
      method: 'GET',
      path: '/*',
      permission: 'site:use',
      limits: ['standard'],
      session: 'browser',
    },
    {
      method: 'POST',
      path: '/*',
      permission: 'site:use',
      limits: ['standard'],
      session: 'browser',
    },
  ],
})
