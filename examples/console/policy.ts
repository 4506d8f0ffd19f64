/** An API with a console for its operators. docs/console.md shows it. */
import { definePolicy } from 'portcullis'
import { authorizationServer } from 'portcullis/authorization-server'
import { console as operatorConsole } from 'portcullis/console'
import { operators } from 'portcullis/operators'
import { plans } from 'portcullis/plans'
import { signIn } from 'portcullis/sign-in'

export default definePolicy({
  features: [operators(), authorizationServer(), signIn(), operatorConsole()],
  roles: {
    customer: ['orders:read'],
    support: ['portcullis:console:open', 'portcullis:callers:read', 'portcullis:audit:read'],
    admin: ['portcullis:*'],
  },
  limits: {
    plan: plans({ plans: { free: '100/min', pro: '5000/min' }, default: 'free' }),
  },
  routes: [{ method: 'GET', path: '/orders', permission: 'orders:read', limits: ['plan'] }],
})
