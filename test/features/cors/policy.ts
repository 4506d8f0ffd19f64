/** A policy with CORS rules of several kinds. */
import { cors } from '../../../src/features/cors/index.ts'
import { definePolicy } from '../../../src/policy/policy.ts'

/** An origin without a page, which a pattern allows. */
export const PREVIEW = 'https://pr-7.preview.example.com'

/** `page`: the exact origin that may read responses. */
export function policyFor(page: string) {
  const exact = cors({ origins: [page], exposeHeaders: ['ETag'] })
  const withCookies = cors({ origins: [page], credentials: true, allowHeaders: ['X-Client'] })
  const previews = cors({
    origins: ['https://*.preview.example.com'],
    privateNetwork: true,
    maxAgeSeconds: 60,
    limits: ['asked'],
  })
  return definePolicy({
    roles: { reader: ['orders:read'], writer: ['orders:read', 'orders:write'] },
    limits: {
      few: { limit: 3, windowSeconds: 600, by: 'subject', onUnavailable: 'deny' },
      asked: { limit: 2, windowSeconds: 600, by: 'address', onUnavailable: 'deny' },
      generous: { limit: 10_000, windowSeconds: 600, by: 'address', onUnavailable: 'deny' },
    },
    routes: [
      { method: 'GET', path: '/orders', permission: 'orders:read', cors: exact },
      { method: 'POST', path: '/orders', permission: 'orders:write', cors: exact },
      { method: 'DELETE', path: '/orders', permission: 'orders:write' },
      { method: 'GET', path: '/closed', permission: 'orders:read' },
      { method: 'GET', path: '/few', permission: 'orders:read', limits: ['few'], cors: exact },
      { method: 'GET', path: '/cookies', anonymous: true, forwardCookies: true, cors: withCookies },
      { method: 'GET', path: '/previews', anonymous: true, limits: ['generous'], cors: previews },
      { method: 'GET', path: '/open', anonymous: true, cors: cors({ origins: '*' }) },
      // A row above decides, also for a preflight request.
      { method: 'PUT', path: '/files/secret', permission: 'orders:write', originSpelling: 'exact' },
      {
        method: 'PUT',
        path: '/files/:name',
        permission: 'orders:write',
        cors: exact,
        originSpelling: 'exact',
      },
    ],
  })
}
