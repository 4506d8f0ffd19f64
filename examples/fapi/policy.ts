/** A policy of an authorization server under FAPI 2.0, and an API that accepts only its bound tokens. */
import { definePolicy } from 'portcullis'
import { authorizationCode } from 'portcullis/authorization-code'
import { authorizationServer } from 'portcullis/authorization-server'
import { operators } from 'portcullis/operators'
import { signIn } from 'portcullis/sign-in'

export default definePolicy({
  roles: { customer: ['accounts:read'] },
  limits: { standard: '100/min' },
  features: [
    operators(),
    signIn(),
    authorizationServer({ profile: 'fapi2' }),
    authorizationCode({ scopes: { 'accounts:read': 'Read your accounts' } }),
  ],
  routes: [
    {
      method: 'GET',
      path: '/accounts',
      permission: 'accounts:read',
      limits: ['standard'],
      dpop: true,
    },
  ],
})
