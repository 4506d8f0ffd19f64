/** Routes of one origin and of others, as they are and under other paths and hosts. */
import { origins } from '../../../src/features/origins/index.ts'
import { definePolicy, group } from '../../../src/index.ts'

export default definePolicy({
  roles: {},
  limits: {},
  maxHeaderBytes: 65_536,
  abuse: { bans: false, authenticationFailures: false },
  origins: origins({
    below: { variable: 'ORIGIN_URL_BELOW', audience: 'urn:below' },
    other: { variable: 'ORIGIN_URL_OTHER' },
  }),
  routes: [
    ...group({ anonymous: true }, [
      { method: 'GET', path: '/plain/*' },
      { method: 'POST', path: '/plain/*' },
      { method: 'GET', path: '/host/*', host: 'shop.test' },
      { method: 'GET', path: '/tenant', host: '*.tenant.test' },
    ]),
    ...group({ anonymous: true, origin: 'below' }, [
      { method: 'GET', path: '/v1/orders/:id', stripPrefix: '/v1' },
      { method: 'GET', path: '/v1/files/*', stripPrefix: '/v1' },
      { method: 'GET', path: '/reports', rewrite: '/internal/reports' },
      { method: 'GET', path: '/reports/:id', rewrite: '/internal/reports/:id' },
    ]),
    { method: 'GET', path: '/other/*', origin: 'other', host: 'other.test', anonymous: true },
  ],
})
