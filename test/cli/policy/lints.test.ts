/** Each rule of `portcullis policy check` with a policy that breaks it, and with one that does not. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import * as mini from 'zod/mini'
import { loadRunTimes } from '../../../cli/patterns/run-time.ts'
import { lint, RULES, type RuleName } from '../../../cli/policy/lints.ts'
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import { mcp } from '../../../src/features/mcp/index.ts'
import { operators } from '../../../src/features/operators/index.ts'
import { origins } from '../../../src/features/origins/index.ts'
import { relations } from '../../../src/features/relations/index.ts'
import { signIn } from '../../../src/features/sign-in/index.ts'
import type { PolicyDefinition } from '../../../src/policy/definition.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { ROOT } from '../../harness/process.ts'

type Definition = PolicyDefinition<string, string>

const runTimes = await loadRunTimes()

const model = JSON.parse(readFileSync(join(ROOT, 'portcullis.model.json'), 'utf8'))
const standard = { limit: 10, windowSeconds: 60, by: 'address', onUnavailable: 'deny' } as const
const READ = {
  method: 'GET',
  path: '/orders',
  permission: 'orders:read',
  limits: ['standard'],
} as const
const WRITE = {
  method: 'POST',
  path: '/orders',
  permission: 'orders:write',
  limits: ['standard'],
  input: { body: z.strictObject({}) },
} as const

/** A policy without findings, except for the parts of `changes`. */
const policyWith = (changes: Partial<Definition>) =>
  definePolicy({
    roles: { reader: ['orders:read'], writer: ['orders:*'] },
    limits: { standard },
    routes: [READ, WRITE],
    ...changes,
  })

const AUDIENCE = 'https://orders.example.com'
const withOrigins = { origins: origins({ orders: { url: 'https://orders.internal' } }) }
const VARIABLES = {
  ISSUERS: JSON.stringify([
    {
      issuer: 'https://idp.example.com',
      audience: ['x', AUDIENCE],
      rolesMap: { Everyone: ['reader'], 'team-*': '*' },
    },
  ]),
}

const withName = (name: z.ZodType) => ({
  routes: [READ, { ...WRITE, input: { body: z.strictObject({ name: z.array(name).optional() }) } }],
})

const CASES: Readonly<
  Record<
    RuleName,
    {
      readonly bad: Partial<Definition>
      readonly good: Partial<Definition>
      readonly path: readonly (string | number)[]
    }
  >
> = {
  'slow-pattern': {
    bad: withName(z.string().regex(/^(a+)+$/)),
    good: withName(
      z
        .string()
        .max(100, { abort: true })
        .regex(/[a-z]+$/),
    ),
    path: ['routes', 1, 'input', 'body'],
  },
  'unlimited-route': {
    bad: { routes: [READ, { ...WRITE, limits: [] }] },
    good: {},
    path: ['routes', 1],
  },
  'unchecked-streams': {
    bad: { routes: [READ, { ...WRITE, recheckSeconds: 0 }] },
    good: { routes: [READ, { ...WRITE, recheckSeconds: 1 }] },
    path: ['routes', 1, 'recheckSeconds'],
  },
  'unbound-tokens': {
    bad: {
      features: [authorizationServer({ profile: 'fapi2' })],
      routes: [{ ...READ, dpop: true }, WRITE],
    },
    good: {
      features: [authorizationServer({ profile: 'fapi2' })],
      routes: [
        { ...READ, dpop: true },
        { ...WRITE, dpop: true },
        { method: 'GET', path: '/ping', anonymous: true, limits: ['standard'] },
      ],
    },
    path: ['routes', 1],
  },
  'unused-limit': {
    bad: { limits: { standard, spare: standard } },
    good: { limits: { standard, operators: standard }, features: [operators()] },
    path: ['limits', 'spare'],
  },
  'ungranted-permission': {
    bad: { routes: [READ, { ...WRITE, permission: 'invoices:write' }] },
    good: { roles: { all: ['*'] } },
    path: ['routes', 1, 'permission'],
  },
  'unused-role': {
    bad: { roles: { writer: ['orders:*'], auditor: ['audits:read'] } },
    good: { roles: { writer: ['orders:*'], operator: ['portcullis:*'] } },
    path: ['roles', 'auditor'],
  },
  'wildcard-over-stricter-route': {
    bad: {
      routes: [
        { ...READ, path: '/files/secret', permission: 'orders:write', originSpelling: 'exact' },
        { ...READ, path: '/files/*' },
        WRITE,
      ],
    },
    good: { routes: [{ ...READ, path: '/files/list' }, { ...READ, path: '/files/*' }, WRITE] },
    path: ['routes', 1, 'path'],
  },
  'look-alike-routes': {
    bad: {
      routes: [
        { ...READ, path: '/files/report', permission: 'orders:write' },
        { ...READ, path: '/files/:name' },
        WRITE,
      ],
    },
    good: {
      routes: [{ ...READ, path: '/files/report' }, { ...READ, path: '/files/:name' }, WRITE],
    },
    path: ['routes', 1, 'path'],
  },
  'unchecked-body': {
    bad: { routes: [READ, { ...WRITE, input: {} }] },
    good: { routes: [READ, { ...WRITE, input: {}, maxBodyBytes: 0 }] },
    path: ['routes', 1],
  },
  'unlimited-write-in-outage': {
    bad: { limits: { standard: { ...standard, onUnavailable: 'allow' } } },
    good: { limits: { standard: { ...standard, onUnavailable: 'allow' } }, routes: [READ] },
    path: ['routes', 1, 'limits'],
  },
  'anonymous-write': {
    bad: { routes: [READ, { ...WRITE, permission: undefined, anonymous: true } as never] },
    good: {},
    path: ['routes', 1],
  },
  'relation-without-parameter': {
    bad: {
      routes: [
        { ...READ, path: '/orders/:id', relation: { object: 'order:all', relation: 'viewer' } },
        WRITE,
      ],
      relations: relations({ model, issuers: [] }),
    },
    good: {
      routes: [
        {
          ...READ,
          path: '/orders/:id',
          relation: { object: 'order:{params.id}', relation: 'viewer' },
        },
        WRITE,
      ],
      relations: relations({ model, issuers: [] }),
    },
    path: ['routes', 0, 'relation'],
  },
  'audience-of-anonymous-route': {
    bad: {
      ...withOrigins,
      routes: [{ ...READ, permission: undefined, anonymous: true, audience: AUDIENCE } as never],
    },
    good: { ...withOrigins, routes: [{ ...READ, audience: AUDIENCE }] },
    path: ['routes', 0, 'audience'],
  },
  'audience-without-issuer': {
    bad: { ...withOrigins, routes: [WRITE, { ...READ, audience: 'https://orders.exampel.com' }] },
    good: { ...withOrigins, routes: [WRITE, { ...READ, audience: AUDIENCE }] },
    path: ['routes', 1, 'audience'],
  },
  'unknown-mapped-role': {
    bad: { roles: { readers: ['orders:*'] } },
    good: { roles: { reader: ['orders:*'] } },
    path: ['roles'],
  },
  'login-age': {
    bad: {
      features: [signIn()],
      routes: [{ ...READ, session: { maxAgeSeconds: 60 } } as never, WRITE],
    },
    good: { features: [signIn()], routes: [{ ...READ, session: 'browser' } as never, WRITE] },
    path: ['routes', 0, 'session'],
  },
  'observe-mode': {
    bad: { routes: [{ ...READ, permission: { name: 'orders:read', mode: 'observe' } }, WRITE] },
    good: { routes: [{ ...READ, permission: { name: 'orders:read', mode: 'enforce' } }, WRITE] },
    path: ['routes', 0, 'permission'],
  },
}

test('a policy without faults has no finding', () => {
  expect(lint(policyWith({}))).toEqual([])
})

test.each([undefined, '', 'no JSON', '{}', '[null]'])('the audiences of ISSUERS=%j', (ISSUERS) => {
  const found = lint(policyWith(CASES['audience-without-issuer'].bad), { ISSUERS })
  expect(found.map(({ rule }) => rule)).toEqual(
    ISSUERS === '[null]' ? ['audience-without-issuer'] : [],
  )
})

test('the providers of the environment are named with what is known of auth_time [S81]', () => {
  const ISSUERS = JSON.stringify([
    { issuer: 'https://a.example/', preset: 'auth0' },
    { issuer: 'https://b.example', preset: 'entra' },
    { issuer: 'https://c.example' },
    { issuer: 'https://d.example', preset: 'okta' },
  ])
  const ISSUER_CLIENTS = JSON.stringify([
    { issuer: 'https://a.example/', signIn: {} },
    { issuer: 'https://b.example', signIn: {} },
    { issuer: 'https://c.example', signIn: {} },
    { issuer: 'https://d.example' },
  ])
  const [found] = lint(policyWith(CASES['login-age'].bad), { ISSUERS, ISSUER_CLIENTS })
  expect(found?.message).toContain('Auth0 sends auth_time when max_age is requested; ')
  expect(found?.message).toContain('Microsoft Entra ID sends auth_time only after a setting: ')
  expect(found?.message).toContain('whether https://c.example sends auth_time')
  expect(found?.message).not.toContain('Okta')
})

test('a permission that no role grants is found with each tool that requires it, once', () => {
  const found = lint(
    policyWith({
      routes: [
        READ,
        WRITE,
        ...mcp({
          path: '/mcp',
          permission: 'orders:read',
          limits: ['standard'],
          tools: { list: true, remove: { permission: 'items:delete' } },
        }),
      ],
    }),
  )
  expect(found).toMatchObject([
    {
      rule: 'ungranted-permission',
      path: ['routes', 2, 'mcp'],
      message: 'POST /mcp: tool remove: no role grants items:delete',
    },
  ])
})

test.each([
  ['invoices:delete', 'invoices:write', "add 'invoices:delete' to a role, unless scopes grant it"],
  ['invoices:wirte', 'invoices:write', 'did you mean "invoices:write"?'],
  ['invoice:write', 'invoices:write', 'did you mean "invoices:write"?'],
])(
  'for %s beside %s in a role, only another spelling is suggested',
  (permission, granted, text) => {
    const policy = policyWith({
      roles: { reader: ['orders:read', granted] },
      routes: [READ, { ...WRITE, permission }],
    })
    const found = lint(policy, {}).find(({ rule }) => rule === 'ungranted-permission')
    expect(found?.suggestion).toBe(text)
  },
)

test('a permission that a client in CLIENTS may request as a scope is granted', () => {
  const policy = policyWith(CASES['ungranted-permission'].bad)
  const CLIENTS = JSON.stringify([{ id: 'a' }, { id: 'b', scopes: ['invoices:write'] }])
  const rulesFound = (clients: string) => lint(policy, { CLIENTS: clients }).map(({ rule }) => rule)
  expect(rulesFound(CLIENTS)).not.toContain('ungranted-permission')
  expect(rulesFound('[{"id":"a"}]')).toContain('ungranted-permission')
  expect(rulesFound('no JSON')).toContain('ungranted-permission')
})

test.each([
  [
    'a pattern whose length is checked later',
    z
      .string()
      .regex(/[a-z]+$/)
      .max(100, { abort: true }),
  ],
  [
    'a length that does not end the checks',
    z
      .string()
      .max(100)
      .regex(/[a-z]+$/),
  ],
  [
    'a length that is too large',
    z
      .string()
      .max(10_000, { abort: true })
      .regex(/[a-z]+$/),
  ],
  ['a schema of zod/mini', mini.string().check(mini.regex(/^(a|a)*$/))],
  [
    'a transformed value',
    z
      .string()
      .transform(String)
      .pipe(z.string().regex(/(x*)*y/)),
  ],
  ['a name of a record', z.record(z.string().regex(/^(\d+)*$/), z.string())],
  ['a lazy schema', z.lazy(() => z.string().regex(/^(\d+)*$/))],
])('slow-pattern is found in %s [S84]', (_, name) => {
  const definition = withName(name as z.ZodType)
  const found = lint(policyWith(definition), VARIABLES, runTimes)
  expect(found).toMatchObject([{ rule: 'slow-pattern', path: ['routes', 1, 'input', 'body'] }])
})

test('slow-pattern is found in a path', () => {
  const routes = [READ, WRITE, { ...READ, path: '/orders/:id{(a+)+b}' }] as const
  const found = lint(policyWith({ routes }), VARIABLES, runTimes)
  expect(found).toMatchObject([{ rule: 'slow-pattern', path: ['routes', 2, 'path'] }])
})

describe.each(Object.entries(CASES))('%s', (rule, { bad, good, path }) => {
  test('is found at its place, once', () => {
    const found = lint(policyWith(bad), VARIABLES, runTimes).filter(
      (finding) => finding.rule === rule,
    )
    expect(found).toMatchObject([{ rule, path, suggestion: expect.any(String) }])
  })

  test('is not found in a policy that is different in this', () => {
    const found = lint(policyWith(good), VARIABLES, runTimes).filter(
      (finding) => finding.rule === rule,
    )
    expect(found).toEqual([])
  })

  test('is documented with its severity', () => {
    const guide = readFileSync(join(ROOT, 'docs/policy-tools.md'), 'utf8')
    expect(guide).toContain(`| \`${rule}\` | ${RULES[rule as RuleName].severity} |`)
  })
})

test('without another issuer, and without the profile, no route accepts unbound tokens unexpectedly', () => {
  const routes = [{ ...READ, dpop: true }, WRITE]
  const countOf = (features: NonNullable<Definition['features']>, issuers: string | undefined) =>
    lint(policyWith({ features, routes }), { ISSUERS: issuers }, runTimes).filter(
      ({ rule }) => rule === 'unbound-tokens',
    ).length
  const fapi = [authorizationServer({ profile: 'fapi2' })]
  expect([countOf(fapi, '[]'), countOf(fapi, undefined)]).toEqual([0, 1])
  expect(countOf([authorizationServer()], VARIABLES.ISSUERS)).toBe(0)
})
