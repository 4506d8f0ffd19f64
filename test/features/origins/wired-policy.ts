/** Origins that fail in different ways, and one path with CORS rules of its own on each host. */
import { cors } from '../../../src/features/cors/index.ts'
import { origins } from '../../../src/features/origins/index.ts'
import { definePolicy, group } from '../../../src/index.ts'

export const SHOP = 'https://shop.example'
export const ADMIN = 'https://admin.example'
/** Longer than a stall of the machine. */
const TIMEOUT_MS = 20_000
const SILENT_MS = 1_500

export default definePolicy({
  roles: {},
  limits: {},
  abuse: { bans: false, authenticationFailures: false },
  origins: origins({
    repeated: {
      variable: 'ORIGIN_URL_FRAGILE',
      audience: 'urn:repeated',
      retries: { max: 2, percent: 100 },
      timeoutMs: TIMEOUT_MS,
    },
    once: { variable: 'ORIGIN_URL_FRAGILE', audience: 'urn:once', timeoutMs: TIMEOUT_MS },
    whole: { variable: 'ORIGIN_URL_PROXY', breaker: 'origin', retries: { percent: 100 } },
    steady: { variable: 'ORIGIN_URL_STEADY' },
  }),
  routes: [
    ...group({ anonymous: true, origin: 'repeated', prefix: '/repeated' }, [
      { method: 'GET', path: '/get' },
      { method: 'POST', path: '/post' },
      { method: 'PUT', path: '/put' },
      { method: 'GET', path: '/silent', originTimeoutMs: SILENT_MS },
    ]),
    { method: 'GET', path: '/once', origin: 'once', anonymous: true },
    ...group({ anonymous: true, origin: 'whole' }, [
      { method: 'GET', path: '/whole/a' },
      { method: 'GET', path: '/whole/b' },
    ]),
    ...group({ anonymous: true, origin: 'steady' }, [
      { method: 'GET', path: '/steady' },
      {
        method: 'PUT',
        path: '/data',
        host: 'shop.test',
        cors: cors({ origins: [SHOP], credentials: true }),
      },
      { method: 'PUT', path: '/data', host: '*.test', cors: cors({ origins: [ADMIN] }) },
      { method: 'PUT', path: '/data' },
    ]),
  ],
})
