/** Three APIs on two hosts behind one gateway. docs/origins.md shows it in parts. */
import { definePolicy, group } from 'portcullis'
import { authorizationServer } from 'portcullis/authorization-server'
import { operators } from 'portcullis/operators'
import { origins } from 'portcullis/origins'
import * as z from 'zod'

export default definePolicy({
  roles: {
    shopper: ['catalog:read', 'orders:read'],
    staff: ['catalog:read', 'orders:*', 'customers:read'],
    operator: ['portcullis:*'],
  },
  // The command line needs both.
  features: [operators(), authorizationServer()],
  limits: {
    standard: '600/min',
    writes: '60/min',
    anonymous: { limit: 120, windowSeconds: 60, by: 'address', onUnavailable: 'deny' },
  },
  origins: origins({
    orders: {
      variable: 'ORIGIN_URL_ORDERS',
      url: 'http://127.0.0.1:9101',
      timeoutMs: 5_000,
      breaker: 'origin',
    },
    catalog: {
      variable: 'ORIGIN_URL_CATALOG',
      url: 'http://127.0.0.1:9102',
      retries: { max: 2, percent: 10 },
      canary: { origin: 'catalog-next', percent: 5 },
    },
    'catalog-next': { variable: 'ORIGIN_URL_CATALOG_NEXT', url: 'http://127.0.0.1:9103' },
    customers: {
      variable: 'ORIGIN_URL_CUSTOMERS',
      url: 'http://127.0.0.1:9104',
      audience: 'https://customers.internal.example',
    },
  }),
  routes: [
    ...group({ host: 'api.shop.example', prefix: '/v1', stripPrefix: '/v1' }, [
      ...group({ origin: 'catalog', anonymous: true, limits: ['anonymous'] }, [
        { method: 'GET', path: '/products' },
        { method: 'GET', path: '/products/:id' },
      ]),
      ...group({ origin: 'orders', permission: 'orders:read', limits: ['standard'] }, [
        { method: 'GET', path: '/orders/:id', rewrite: '/internal/orders/:id' },
        {
          method: 'POST',
          path: '/orders',
          permission: 'orders:write',
          limits: ['writes'],
          input: { body: z.strictObject({ product: z.string(), quantity: z.int().min(1) }) },
        },
      ]),
    ]),
    ...group(
      {
        host: 'admin.shop.example',
        origin: 'customers',
        permission: 'customers:read',
        limits: ['standard'],
        requestHeaders: { remove: ['Accept-Language'], set: { 'X-Channel': 'admin' } },
        responseHeaders: { set: { 'X-Frame-Options': 'DENY' } },
      },
      [
        { method: 'GET', path: '/customers' },
        { method: 'GET', path: '/customers/:id' },
      ],
    ),
  ],
})
