/** The policy of a gateway with a console, for isolates and for servers. */
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import {
  type ConsoleOptions,
  console as consoleFeature,
} from '../../../src/features/console/index.ts'
import { mcp } from '../../../src/features/mcp/index.ts'
import { openapi } from '../../../src/features/openapi/index.ts'
import { type OperatorsOptions, operators } from '../../../src/features/operators/index.ts'
import { plans } from '../../../src/features/plans/index.ts'
import { relations } from '../../../src/features/relations/index.ts'
import { signIn } from '../../../src/features/sign-in/index.ts'
import { definePolicy } from '../../../src/policy/policy.ts'

const ISSUER = 'https://issuer.test'
/** The header with the number of rows that D1 has read, if requests are sent one after the other. */
export const ROWS_READ = 'X-Rows-Read'
/** Where a Worker of the tests answers for its audit database. */
export const DATABASE_PATH = '/test/database'

/** The definition of the tool that the policy pins. */
export const APPROVED_TOOL = {
  name: 'list_shelves',
  description: 'Lists.',
  inputSchema: { type: 'object' },
}
/** Its hash, from `definitionHash`. */
const definition = 'sha256-VBVrqSIrwk-g3dE_ybLeC1uad5TvSX42T3Dbu-SvIes'

/** A folder's viewers are its own, its editors, and the viewers of its parent, except banned ones. */
const direct = { this: {} }
const MODEL = {
  schema_version: '1.1',
  type_definitions: [
    { type: 'user' },
    {
      type: 'group',
      relations: { member: direct },
      metadata: { relations: { member: { directly_related_user_types: [{ type: 'user' }] } } },
    },
    {
      type: 'folder',
      relations: {
        editor: direct,
        banned: direct,
        viewer: {
          difference: {
            base: { union: { child: [direct, { computedUserset: { relation: 'editor' } }] } },
            subtract: { computedUserset: { relation: 'banned' } },
          },
        },
      },
      metadata: {
        relations: {
          editor: { directly_related_user_types: [{ type: 'group', relation: 'member' }] },
          banned: { directly_related_user_types: [{ type: 'user' }] },
          viewer: { directly_related_user_types: [{ type: 'user' }] },
        },
      },
    },
  ],
}

export const policyWith = (options: ConsoleOptions = {}, sessions?: OperatorsOptions['sessions']) =>
  definePolicy({
    abuse: { exempt: ['192.0.2.1'] },
    features: [
      operators(sessions === undefined ? {} : { sessions }),
      authorizationServer(),
      openapi(),
      signIn(),
      consoleFeature(options),
    ],
    roles: {
      reader: ['orders:read'],
      operator: ['portcullis:*', 'requests:explain'],
      viewer: ['portcullis:console:open'],
      support: ['portcullis:console:open', 'portcullis:callers:read'],
    },
    limits: {
      standard: { limit: 100, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
      plan: plans({ plans: { free: '50/min', pro: '5000/min' }, default: 'free' }),
      tenants: { limit: 10, windowSeconds: 60, by: 'tenant', onUnavailable: 'deny' },
      clients: { limit: 100, windowSeconds: 60, by: 'client', onUnavailable: 'deny' },
    },
    relations: relations({ model: MODEL, issuers: [ISSUER] }),
    routes: [
      { method: 'GET', path: '/metered', permission: 'orders:read', limits: ['plan'] },
      { method: 'GET', path: '/shared', permission: 'orders:read', limits: ['tenants', 'clients'] },
      ...mcp({
        path: '/mcp',
        permission: 'orders:read',
        tools: { list_shelves: { definition }, search_books: { arguments: 'any' } },
      }),
      { method: 'GET', path: '/orders', permission: 'orders:read', limits: ['standard'] },
      { method: 'GET', path: '/public', anonymous: true },
    ],
  })
