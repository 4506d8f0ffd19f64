/** Origins that demand each kind of credentials, and routes with credentials of their own. */
import * as z from 'zod'
import { clientCredentials, secret } from '../../../src/features/credentials/index.ts'
import { mcp } from '../../../src/features/mcp/index.ts'
import { origins } from '../../../src/features/origins/index.ts'
import { definePolicy, group } from '../../../src/index.ts'
import { JWT_RESOURCE } from '../../harness/oidc-resources.ts'

const variable = 'ORIGIN_SECRET_API'
/** Shorter than a call to a token endpoint may take. */
const TIMEOUT_MS = 3_000
const KEY_HEADER = 'X-Api-Key'

const token = clientCredentials({
  tokenEndpointVariable: 'ORIGIN_TOKEN_URL_API',
  client: 'orders-web',
  variable: 'ORIGIN_SECRET_CLIENT',
  scope: 'read:orders',
  resource: JWT_RESOURCE,
})

const at = (name: string) => ({
  variable: 'ORIGIN_URL_API',
  audience: `urn:${name}`,
  timeoutMs: TIMEOUT_MS,
})

export default definePolicy({
  roles: { reader: ['orders:read', 'books:use'] },
  limits: {},
  abuse: { bans: false, authenticationFailures: false },
  origins: origins({
    header: { ...at('header'), credentials: secret({ variable, header: KEY_HEADER }) },
    bearer: {
      ...at('bearer'),
      credentials: secret({ variable, header: 'Authorization', scheme: 'Bearer' }),
    },
    basic: { ...at('basic'), credentials: secret({ variable, basic: 'portcullis' }) },
    query: { ...at('query'), credentials: secret({ variable, query: 'api_key' }) },
    token: { ...at('token'), credentials: token },
  }),
  routes: [
    ...(['header', 'bearer', 'basic', 'query', 'token'] as const).flatMap((origin) =>
      group({ origin, prefix: `/${origin}`, permission: 'orders:read' }, [
        { method: 'GET', path: '/*' },
        { method: 'POST', path: '/*' },
      ]),
    ),
    {
      method: 'GET',
      path: '/both/*',
      permission: 'orders:read',
      origin: 'header',
      forwardAuthorization: true,
    },
    // Without an entry in `origins`, at the origin of the environment.
    { method: 'GET', path: '/own', permission: 'orders:read', credentials: token },
    { method: 'GET', path: '/plain', permission: 'orders:read' },
    ...mcp({
      path: '/mcp',
      permission: 'books:use',
      credentials: secret({ variable, header: KEY_HEADER }),
      tools: { find: { arguments: z.strictObject({}) } },
    }),
  ],
})
