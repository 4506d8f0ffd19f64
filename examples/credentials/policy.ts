/** Two APIs that know only the gateway: one has a fixed key, the other accepts access tokens. */
import { definePolicy, group } from 'portcullis'
import { clientCredentials, secret } from 'portcullis/credentials'
import { origins } from 'portcullis/origins'

export default definePolicy({
  roles: { clerk: ['orders:read', 'invoices:read'] },
  limits: { standard: '100/min' },
  origins: origins({
    orders: {
      variable: 'ORIGIN_URL_ORDERS',
      credentials: secret({ variable: 'ORIGIN_SECRET_ORDERS', header: 'X-Api-Key' }),
    },
    invoices: {
      variable: 'ORIGIN_URL_INVOICES',
      credentials: clientCredentials({
        tokenEndpoint: 'https://login.example.com/oauth/token',
        client: 'portcullis',
        variable: 'ORIGIN_SECRET_INVOICES',
        scope: 'invoices',
      }),
    },
  }),
  routes: [
    ...group({ limits: ['standard'] }, [
      { method: 'GET', path: '/orders', permission: 'orders:read', origin: 'orders' },
      { method: 'GET', path: '/invoices', permission: 'invoices:read', origin: 'invoices' },
    ]),
  ],
})
