/** All pages and actions of the console, with an input for each: a new one without an input fails the tests. */
import { ACTIONS } from '../../../src/features/console/actions.ts'
import { PAGES } from '../../../src/features/console/pages.ts'

const ID = '01a1f920-fe19-7a05-8d2a-1dea6edacba3'

/** What a page with parameters is called with. */
export interface Examples {
  readonly request: string
  readonly key: string
}

/** Returns the path of each page that is read with GET. */
export const pathsOf = ({ request, key }: Examples): readonly string[] => {
  const values: Readonly<Record<string, string>> = {
    '/decisions/:id': `/decisions/${request}`,
    '/api-keys/:id': `/api-keys/${key}`,
    '/callers': '/callers?kind=subject&value=bob',
  }
  return PAGES.filter(({ method }) => method !== 'POST').map(({ path }) => {
    const filled = values[path] ?? path
    if (filled.includes(':')) throw new Error(`the tests need a value for ${path}`)
    return `/-/console${filled}`
  })
}

/** The forms of pages that change nothing, by path. */
const QUERIES: Readonly<Record<string, Record<string, string>>> = {
  '/explain': { method: 'GET', path: '/orders', subject: 'alice', roles: 'reader' },
  '/api-keys/lookup': { apiKey: 'pk_00000000000000000000000000000000000000000001zqVSB' },
  '/relations/check': { object: 'folder:1', relation: 'viewer', subject: 'user:alice' },
  '/relations/expand': { object: 'folder:1', relation: 'viewer' },
  '/relations/who': { object: 'folder:1', relation: 'viewer' },
}

const OF_CALLER = { kind: 'subject', value: 'mallory' }
const OF_TUPLE = { object: 'folder:1', relation: 'banned', subject: 'user:mallory' }
const OF_TOOL = { server: '/mcp', tool: 'list_shelves' }

/** The forms of actions, by the name of the action. Their ids are those of no record. */
const INPUTS: Readonly<Record<string, Record<string, string>>> = {
  createRevocation: OF_CALLER,
  deleteRevocation: { id: ID },
  createBan: { ...OF_CALLER, seconds: '60' },
  deleteBan: { id: ID },
  createLimitOverride: { limit: 'standard', value: 'mallory', requests: '5' },
  deleteLimitOverride: { id: ID },
  resetLimit: { limit: 'standard', value: 'mallory' },
  createApiKey: { name: 'a key', subject: 'reporter' },
  rotateApiKey: { id: ID, graceSeconds: '0' },
  expireApiKey: { id: ID, days: '1' },
  planApiKey: { id: ID, plan: 'pro' },
  disableApiKey: { id: ID },
  assignPlan: { by: 'tenant', value: 'acme', plan: 'pro' },
  removePlanAssignment: { id: ID },
  writeRelation: OF_TUPLE,
  deleteRelation: OF_TUPLE,
  approveMcpTool: { ...OF_TOOL, hash: `sha256-${'A'.repeat(43)}` },
  withdrawMcpApproval: OF_TOOL,
  createErasure: { subject: 'mallory', issuer: 'https://issuer.test' },
}

/** Every form of the console: its path, what it is called in a test, and its values. */
export const FORMS = PAGES.filter(({ method }) => method === 'POST').flatMap(({ path }) => {
  if (path !== '/actions') return [[path, path, inputOf(QUERIES, path)] as const]
  return Object.keys(ACTIONS).map((action) => {
    const values = { action, reason: 'a test', back: '/-/console', ...inputOf(INPUTS, action) }
    return [action, path, values] as const
  })
})

function inputOf(inputs: Readonly<Record<string, Record<string, string>>>, name: string) {
  const found = inputs[name]
  if (found === undefined) throw new Error(`the tests need a form for ${name}`)
  return found
}
