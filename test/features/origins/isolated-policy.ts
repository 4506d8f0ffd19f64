import { origins } from '../../../src/features/origins/index.ts'
import { definePolicy, group } from '../../../src/index.ts'

/** Two origins on two hosts, and one route on every host. */
export default definePolicy({
  roles: { reader: ['a:read'] },
  limits: {},
  abuse: { bans: false, authenticationFailures: false },
  origins: origins({
    red: { variable: 'ORIGIN_URL_RED', retries: {} },
    blue: { variable: 'ORIGIN_URL_BLUE' },
  }),
  routes: [
    ...group({ host: 'red.test', origin: 'red', permission: 'a:read' }, [
      { method: 'GET', path: '/same', coalesce: true },
      { method: 'GET', path: '/cookies', forwardCookies: true },
      { method: 'GET', path: '/token', forwardAuthorization: true },
      { method: 'GET', path: '/v1/:id', rewrite: '/internal/:id' },
      {
        method: 'GET',
        path: '/tagged',
        requestHeaders: { set: { 'X-Tag': 'red' } },
        responseHeaders: { remove: ['X-Origin'], set: { 'X-Frame-Options': 'DENY' } },
      },
    ]),
    ...group({ host: '*.blue.test', origin: 'blue', permission: 'a:read' }, [
      { method: 'GET', path: '/same', coalesce: true },
    ]),
    { method: 'GET', path: '/moved', origin: 'blue', anonymous: true },
  ],
})
