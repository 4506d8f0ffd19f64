/** `portcullis policy diff`: the changes, and the callers that they affect. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { markdownOf } from '../../../cli/policy/compare.ts'
import { diffPolicies } from '../../../cli/policy/diff.ts'
import { matrixOf } from '../../../cli/policy/matrix.ts'
import { Misconfigured } from '../../../src/errors.ts'
import { authorizationCode } from '../../../src/features/authorization-code/index.ts'
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import { secret } from '../../../src/features/credentials/index.ts'
import { type McpOptions, mcp } from '../../../src/features/mcp/index.ts'
import { origins } from '../../../src/features/origins/index.ts'
import { signIn } from '../../../src/features/sign-in/index.ts'
import type { PolicyDefinition, RouteDefinition } from '../../../src/policy/definition.ts'
import { definePolicy, type Policy } from '../../../src/policy/policy.ts'
import { policyTester } from '../../../src/testing/index.ts'

const NO_ROLE = 'no role'
const ANONYMOUS = 'anonymous'

type Definition = PolicyDefinition<string, string>

const limit = { limit: 100, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' } as const
const GET = {
  method: 'GET',
  path: '/orders',
  permission: 'orders:read',
  limits: ['standard'],
} as const
const POST = {
  method: 'POST',
  path: '/orders',
  permission: 'orders:write',
  input: { body: z.strictObject({ item: z.string(), quantity: z.int().min(1).optional() }) },
} as const
const DELETE = { method: 'DELETE', path: '/orders/:id', permission: 'orders:delete' } as const

const policyWith = (changes: Partial<Definition> = {}) =>
  definePolicy({
    roles: { reader: ['orders:read'], admin: ['orders:*'] },
    limits: { standard: limit },
    routes: [GET, POST],
    ...changes,
  })

const linesOf = (before: Partial<Definition>, after: Partial<Definition>) =>
  diffPolicies(policyWith(before), policyWith(after)).map(
    ({ effect, text }) => `${effect}: ${text}`,
  )

const withBody = (body: z.ZodType): Partial<Definition> => ({
  routes: [GET, { ...POST, input: { body } }],
})
const body = POST.input.body.shape

test('a required nonce is narrowing, and settings of the authorization server are compared', () => {
  const withServer = (
    server: Parameters<typeof authorizationServer>[0],
    code: Parameters<typeof authorizationCode>[0],
    dpopNonceRequired: boolean,
  ): Partial<Definition> => ({
    features: [authorizationServer(server), signIn(), authorizationCode(code)],
    tokens: { dpopNonceRequired },
  })
  const [before, after] = [
    withServer({}, {}, false),
    withServer({ profile: 'fapi2' }, { documents: false }, true),
  ]
  expect(linesOf(before, after)).toEqual([
    'narrowing: features.authorizationServer.profile: changes from the default to "fapi2": tighter',
    'narrowing: features.authorizationCode.documents: changes from {} to false: tighter',
    'narrowing: tokens.dpopNonceRequired: DPoP proofs without a nonce are accepted no longer',
  ])
  expect(linesOf(after, before)).toContain(
    'widening: tokens.dpopNonceRequired: DPoP proofs without a nonce are accepted now',
  )
})

test('credentials at an origin that change are reported once, without a value', () => {
  const at = (variable?: string): Partial<Definition> => ({
    origins: origins({
      main: {
        url: 'https://main.test',
        ...(variable && { credentials: secret({ variable, header: 'X-Api-Key' }) }),
      },
    }),
    routes: [GET, POST].map((route) => ({ ...route, origin: 'main' })),
  })
  const [one, another] = ['ORIGIN_SECRET_A', 'ORIGIN_SECRET_B']
  expect(linesOf(at(), at())).toEqual([])
  expect(linesOf(at(one), at(one))).toEqual([])
  expect(linesOf(at(), at(one))).toEqual([
    'neutral: origins.main: credentials at the origin from none to header X-Api-Key from ORIGIN_SECRET_A',
  ])
  expect(linesOf(at(one), at(another))).toEqual([
    'neutral: origins.main: credentials at the origin from header X-Api-Key from ORIGIN_SECRET_A to header X-Api-Key from ORIGIN_SECRET_B',
  ])
})

describe('a change is reported in words, for both directions:', () => {
  test.each<[string, Partial<Definition>, string[], string[]]>([
    [
      'a route',
      { routes: [GET, POST, DELETE] },
      ['widening: admin gains DELETE /orders/:id (new route)'],
      ['narrowing: admin loses DELETE /orders/:id (route removed)'],
    ],
    [
      'a permission of a role',
      { roles: { reader: ['orders:read', 'orders:write'], admin: ['orders:*'] } },
      ['widening: reader gains POST /orders'],
      ['narrowing: reader loses POST /orders'],
    ],
    [
      'an anonymous route',
      { routes: [{ method: 'GET', path: '/orders', anonymous: true }, POST] },
      [
        'widening: anonymous and no role gain GET /orders',
        'widening: GET /orders: no longer limited by standard (100 per 60 s by subject)',
      ],
      [
        'narrowing: anonymous and no role lose GET /orders',
        'narrowing: GET /orders: limited by standard now (100 per 60 s by subject)',
      ],
    ],
    [
      'the size of a limit',
      { limits: { standard: { ...limit, limit: 200 } } },
      [
        'widening: limits.standard: 100 per 60 s by subject becomes 200 per 60 s by subject: looser',
      ],
      [
        'narrowing: limits.standard: 200 per 60 s by subject becomes 100 per 60 s by subject: tighter',
      ],
    ],
    [
      'a limit during outages',
      { limits: { standard: { ...limit, onUnavailable: 'allow' } } },
      ["widening: limits.standard: onUnavailable is 'allow' now"],
      ["narrowing: limits.standard: onUnavailable is 'deny' now"],
    ],
    [
      'a DPoP proof',
      { routes: [{ ...GET, dpop: true }, POST] },
      ['narrowing: GET /orders: a DPoP proof is required now'],
      ['widening: GET /orders: a DPoP proof is required no longer'],
    ],
    [
      'the size of a body',
      { routes: [GET, { ...POST, maxBodyBytes: 10 }] },
      ['narrowing: POST /orders: maxBodyBytes from 1048576 bytes to 10 bytes'],
      ['widening: POST /orders: maxBodyBytes from 10 bytes to 1048576 bytes'],
    ],
    [
      'a timeout',
      { routes: [GET, { ...POST, originTimeoutMs: 10 }] },
      ['neutral: POST /orders: originTimeoutMs from 15000 to 10'],
      ['neutral: POST /orders: originTimeoutMs from 10 to 15000'],
    ],
    [
      'a required member of the input',
      withBody(z.strictObject({ ...body, quantity: z.int().min(1) })),
      ['narrowing: body of POST /orders: quantity is required now'],
      ['widening: body of POST /orders: quantity is optional now'],
    ],
    [
      'a member of the input',
      withBody(z.strictObject({ ...body, note: z.string().optional() })),
      ['widening: body of POST /orders: note is accepted now'],
      ['narrowing: body of POST /orders: note is refused now'],
    ],
    [
      'a bound of the input',
      withBody(z.strictObject({ ...body, quantity: z.int().min(2).optional() })),
      ['narrowing: body of POST /orders: minimum of quantity from 1 to 2'],
      ['widening: body of POST /orders: minimum of quantity from 2 to 1'],
    ],
    [
      'unknown keys of the input',
      withBody(z.looseObject(body)),
      ['widening: body of POST /orders: unknown keys are accepted now'],
      ['narrowing: body of POST /orders: unknown keys are refused now'],
    ],
    [
      'the schema of the input',
      { routes: [GET, { ...POST, input: {} }] },
      ['widening: body of POST /orders: no longer checked by a schema'],
      ['narrowing: body of POST /orders: checked by a schema now'],
    ],
    [
      'a role of operators',
      { roles: { reader: ['orders:read'], admin: ['orders:*'], operator: ['portcullis:*'] } },
      ['widening: roles.operator: operators with portcullis:* now'],
      ['narrowing: roles.operator: operators with portcullis:* no longer'],
    ],
    [
      'headers that clients may send',
      { stripHeaders: ['X-Tenant'] },
      ['narrowing: stripHeaders: clients may send X-Tenant no longer'],
      ['widening: stripHeaders: clients may send X-Tenant now'],
    ],
  ])('%s', (_, changes, forward, back) => {
    expect(linesOf({}, changes)).toEqual(forward)
    expect(linesOf(changes, {})).toEqual(back)
  })

  test('a permission that scopes can name, in both classes', () => {
    const after = { routes: [{ ...GET, permission: 'orders:list' }, POST] }
    expect(linesOf({}, after)).toEqual([
      'narrowing: reader loses GET /orders',
      'widening: callers with the scope orders:list may gain GET /orders',
      'narrowing: callers with the scope orders:read may lose GET /orders',
    ])
  })

  test('a removed row below a wildcard is compared with the wildcard', () => {
    const wildcard = { method: 'GET', path: '/orders/*', permission: 'orders:write' } as const
    const row = { method: 'GET', path: '/orders/:id', permission: 'orders:read' } as const
    const before = { routes: [row, wildcard, POST] }
    expect(linesOf(before, { routes: [wildcard, POST] })[0]).toBe(
      'narrowing: reader loses GET /orders/:id',
    )
  })

  test('a route of one host is compared with the routes that this host had before', () => {
    const shared = { origins: origins({ main: { url: 'https://main.test' } }) }
    const [get, post] = [GET, POST].map((row) => ({
      ...row,
      origin: 'main',
      originSpelling: 'exact',
    })) as [never, never]
    const own = { ...(get as object), host: 'api.example.com', permission: 'orders:write' }
    const after = { ...shared, routes: [own as never, get, post] }
    expect(linesOf({ ...shared, routes: [get, post] }, after)[0]).toBe(
      'narrowing: reader loses GET api.example.com/orders',
    )
  })

  test('in Markdown, names cannot break the table', () => {
    const text = markdownOf([{ effect: 'widening', of: 'x', text: 'a | <b>\n# c' }])
    expect(text.split('\n').at(-1)).toBe('| widening | a \\| &lt;b>\\\\u{a}\\# c |')
  })
})

const PATHS = ['/a', '/a/:id', '/a/*', '/b', '/b/c', '/b/:id'] as const
const GRANTS = ['x:read', 'x:write', 'y:read', 'x:*', 'y:*', '*'] as const
const ROLES = ['one', 'two', 'three'] as const

const arbitraryRoute = fc
  .tuple(
    fc.constantFrom('GET' as const, 'DELETE' as const),
    fc.constantFrom(...PATHS),
    fc.constantFrom('x:read', 'x:write', 'y:read', undefined),
  )
  .map(([method, path, permission]): RouteDefinition => {
    return permission === undefined
      ? { method, path, anonymous: true }
      : { method, path, permission }
  })

const arbitraryPolicy = fc
  .record({
    roles: fc.dictionary(fc.constantFrom(...ROLES), fc.subarray([...GRANTS])),
    routes: fc.uniqueArray(arbitraryRoute, {
      minLength: 1,
      maxLength: 6,
      selector: ({ method, path }) => method + path,
    }),
  })
  .map((definition) => policyOrNone({ limits: {}, ...definition }))
  .filter((policy) => policy !== undefined)

/** Most definitions are valid. */
function policyOrNone(definition: Definition): Policy | undefined {
  try {
    return definePolicy(definition)
  } catch (error) {
    if (error instanceof Misconfigured) return undefined
    throw error
  }
}

const CALLERS = [ANONYMOUS, NO_ROLE, ...ROLES]

/** Returns whether the gateway allows each caller a request of each pattern. */
async function decisionsOf(policy: Policy, lines: readonly string[]): Promise<Set<string>> {
  const tester = policyTester(policy)
  const allowed = new Set<string>()
  for (const line of lines) {
    for (const caller of CALLERS) {
      const roles = caller === NO_ROLE ? [] : [caller]
      const as = caller === ANONYMOUS ? undefined : { sub: caller, roles }
      const request = line.replace(/:\w+/g, 'x1').replace('*', 'sub/x2')
      if ((await tester.request(request, { as })).allowed) allowed.add(`${caller} ${line}`)
    }
  }
  return allowed
}

test('for random policies, the gains and losses are the differences between decisions of the gateway', async () => {
  await fc.assert(
    fc.asyncProperty(arbitraryPolicy, arbitraryPolicy, async (before, after) => {
      const changes = diffPolicies(before, after)
      const lines = [...before.routes, ...after.routes].map(
        ({ method, path }) => `${method} ${path}`,
      )
      const [was, is] = [
        await decisionsOf(before, [...new Set(lines)]),
        await decisionsOf(after, [...new Set(lines)]),
      ]
      const known = new Set([...CALLERS.slice(0, 2), ...before.roles.keys(), ...after.roles.keys()])
      const differences = (from: Set<string>, to: Set<string>) =>
        [...to]
          .filter((one) => !from.has(one))
          .filter((one) => [...known].some((caller) => one.startsWith(`${caller} `)))
          .sort()
      const gains = changes.flatMap(({ of, gain = [] }) => gain.map((caller) => `${caller} ${of}`))
      const losses = changes.flatMap(({ of, lose = [] }) => lose.map((caller) => `${caller} ${of}`))
      expect(gains.sort()).toEqual(differences(was, is))
      expect(losses.sort()).toEqual(differences(is, was))
    }),
    { numRuns: 30 },
  )
})

describe('the tools of an MCP server', () => {
  const KEY_HASH = `sha256-${'a'.repeat(43)}`
  const serverWith = (
    tools: McpOptions['tools'],
    changes: Partial<Definition> = {},
    options: Partial<McpOptions> = {},
  ) =>
    definePolicy({
      roles: { reader: ['mcp:use', 'books:read'], librarian: ['mcp:use', 'books:*'], guest: [] },
      limits: { standard: limit, costly: { ...limit, limit: 5 } },
      routes: mcp({
        path: '/mcp',
        permission: 'mcp:use',
        limits: ['standard'],
        ...(tools && { tools }),
        ...options,
      }),
      ...changes,
    })
  const textsOf = (before: Policy, after: Policy) =>
    diffPolicies(before, after).map(({ effect, text }) => `${effect}: ${text}`)
  const isbn = z.strictObject({ isbn: z.string() })
  const LIST = { list_shelves: true } as const
  const TOOL = { permission: 'books:delete', arguments: isbn } as const

  test.each<[string, Policy, string[], string[]]>([
    [
      'a tool',
      serverWith({ ...LIST, remove_book: TOOL }),
      ['widening: librarian gains tool remove_book of POST /mcp (new)'],
      ['narrowing: librarian loses tool remove_book of POST /mcp (removed)'],
    ],
    [
      'a tool that no role may use',
      serverWith({ ...LIST, remove_book: { permission: 'shelves:delete' } }),
      ['neutral: tool remove_book of POST /mcp (new): no role may call it'],
      ['neutral: tool remove_book of POST /mcp (removed): no role may call it'],
    ],
    [
      'the permission of a tool',
      serverWith({ list_shelves: { permission: 'books:list' } }),
      [
        'narrowing: reader loses tool list_shelves of POST /mcp',
        'widening: callers with the scope books:list may gain tool list_shelves of POST /mcp',
      ],
      [
        'widening: reader gains tool list_shelves of POST /mcp',
        'narrowing: callers with the scope books:list may lose tool list_shelves of POST /mcp',
      ],
    ],
    [
      'the arguments, the limits and the definition of a tool',
      serverWith({
        list_shelves: { arguments: isbn.partial(), limits: ['costly'], definition: KEY_HASH },
      }),
      [
        'widening: arguments of tool list_shelves of POST /mcp: isbn is accepted now',
        'narrowing: tool list_shelves of POST /mcp: limited by costly now',
        'narrowing: tool list_shelves of POST /mcp: an approved definition is required now',
      ],
      [
        'narrowing: arguments of tool list_shelves of POST /mcp: isbn is refused now',
        'widening: tool list_shelves of POST /mcp: no longer limited by costly',
        'widening: tool list_shelves of POST /mcp: an approved definition is no longer required',
      ],
    ],
    [
      'a wildcard over a tool',
      serverWith({ '*': { permission: 'books:list', arguments: 'any' }, ...LIST }),
      ['widening: librarian gains tool * of POST /mcp (new)'],
      ['narrowing: librarian loses tool * of POST /mcp (removed)'],
    ],
    [
      'a prompt and resources',
      serverWith(LIST, {}, { prompts: { review: true }, resources: { 'file:///a/*': true } }),
      [
        'widening: reader and librarian gain prompt review of POST /mcp (new)',
        'widening: reader and librarian gain resource file:///a/* of POST /mcp (new)',
      ],
      [
        'narrowing: reader and librarian lose prompt review of POST /mcp (removed)',
        'narrowing: reader and librarian lose resource file:///a/* of POST /mcp (removed)',
      ],
    ],
    [
      'a setting of the server',
      serverWith(LIST, {}, { definitions: 'observe' }),
      ['widening: POST /mcp: definitions from the default to "observe"'],
      ['widening: POST /mcp: definitions from "observe" to the default'],
    ],
  ])('%s is compared, in both directions', (_, changed, there, back) => {
    const server = serverWith(LIST)
    expect(textsOf(server, changed)).toEqual(there)
    expect(textsOf(changed, server)).toEqual(back)
    expect(textsOf(changed, changed)).toEqual([])
  })

  test('are compared with what covers them: a wildcard, or the beginning of a resource', () => {
    const before = serverWith(
      { '*': { arguments: 'any' } },
      {},
      { resources: { 'file:///docs/*': { permission: 'books:read' } } },
    )
    const after = serverWith(
      { list_shelves: { arguments: 'any' }, '*': { arguments: 'any' } },
      {},
      {
        resources: {
          'file:///docs/a': { permission: 'books:list' },
          'file:///docs/*': { permission: 'books:read' },
        },
      },
    )
    expect(textsOf(before, after).filter((text) => !text.includes('scope'))).toEqual([
      'narrowing: reader loses resource file:///docs/a of POST /mcp',
    ])
  })

  test('of JSON-RPC are compared as well', () => {
    const rpcWith = (tools: Readonly<Record<string, true | { permission: string }>>) =>
      policyWith({
        routes: [
          GET,
          {
            method: 'POST',
            path: '/rpc',
            permission: 'orders:read',
            inspect: { jsonRpc: { methods: { 'tools/call': true }, tools } },
          },
        ],
      })
    const [before, after] = [
      rpcWith({}),
      rpcWith({ delete_order: { permission: 'orders:delete' } }),
    ]
    expect(textsOf(before, after)).toEqual([
      'widening: admin gains tool delete_order of POST /rpc (new)',
    ])
    const open = policyWith({
      routes: [GET, { method: 'POST', path: '/rpc', permission: 'orders:read', inspect: {} }],
    })
    expect(textsOf(open, after)).toContain(
      'narrowing: POST /rpc: only the listed calls are allowed now',
    )
  })

  test('have rows in the matrix, which the permissions of the server and of the tool decide', async () => {
    const policy = serverWith({
      ...LIST,
      remove_book: { ...TOOL, limits: ['costly'] },
    })
    const { rows } = matrixOf(policy)
    expect(rows.map(({ route }) => route)).toEqual([
      'POST /mcp',
      'tool list_shelves of POST /mcp',
      'tool remove_book of POST /mcp',
      'GET /mcp',
      'DELETE /mcp',
    ])
    expect(rows[2]).toMatchObject({
      permission: 'mcp:use and books:delete',
      admits: {
        [ANONYMOUS]: false,
        [NO_ROLE]: false,
        reader: false,
        librarian: true,
        guest: false,
      },
      limits: ['standard (100 per 60 s by subject)', 'costly (5 per 60 s by subject)'],
    })
  })
})

test('for random policies, the matrix has the decisions of the gateway', async () => {
  await fc.assert(
    fc.asyncProperty(arbitraryPolicy, async (policy) => {
      const { callers, rows } = matrixOf(policy)
      const allowed = await decisionsOf(
        policy,
        rows.map(({ route }) => route),
      )
      const expected = rows.flatMap(({ route, admits }) =>
        callers.flatMap((caller) => (admits[caller] ? [`${caller} ${route}`] : [])),
      )
      const asked = [...allowed].filter((one) =>
        callers.some((caller) => one.startsWith(`${caller} `)),
      )
      expect(asked.sort()).toEqual(expected.sort())
    }),
    { numRuns: 20 },
  )
})

test('a policy compared with itself has no change', () => {
  fc.assert(
    fc.property(arbitraryPolicy, (policy) => {
      expect(diffPolicies(policy, policy)).toEqual([])
    }),
  )
  const make = () =>
    policyWith({ limits: { standard: { ...limit, by: ({ address }) => address } } })
  expect(diffPolicies(make(), make())).toEqual([])
})
