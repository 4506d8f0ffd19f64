/** Features that are wrong: a clear mistake at the start, and never an admission. */
import { Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import * as z from 'zod/mini'
import { Misconfigured } from '../../../src/errors.ts'
import { defineFeature, type FeatureStage } from '../../../src/feature.ts'
import { openapi } from '../../../src/features/openapi/index.ts'
import type { Feature } from '../../../src/gateway/feature.ts'
import { isReserved } from '../../../src/gateway/own-feature/names.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { OPERATOR_PERMISSIONS } from '../../../src/routes/admin/permissions.ts'
import { startGateway, type TestGateway } from '../../features/operators/gateway.ts'

const policyWith = (...features: readonly Feature[]) =>
  definePolicy({
    roles: { reader: ['orders:read'] },
    limits: {},
    features,
    routes: [
      { method: 'GET', path: '/orders', permission: 'orders:read' },
      { method: 'GET', path: '/orders/:id', permission: 'orders:read' },
    ],
  })

function mistakesOf(act: () => unknown): readonly string[] {
  try {
    act()
  } catch (error) {
    if (error instanceof Misconfigured) return error.mistakes
    throw error
  }
  throw new Error('there was no mistake')
}

/** Calls the function as code without types does. */
const defined = (changes: object): Feature =>
  Reflect.apply(defineFeature, undefined, [{ name: 'door', create: () => ({}), ...changes }])

test.each<[string, object, string]>([
  [
    'no camel case',
    { name: 'front-door' },
    'features["front-door"].name: must be in camel case, such as frontDoor',
  ],
  ['a name of the gateway', { name: 'audit' }, 'features.audit.name: is reserved for the gateway'],
  [
    'a name of the package',
    { name: 'operators' },
    'features.operators.name: is reserved for the gateway',
  ],
  ['an unknown member', { stages: [] }, 'features.door: Unrecognized key: "stages"'],
  ...(['operatorCalls', 'routes'] as const).flatMap((slot) =>
    (['params', 'query', 'body'] as const).map((part): [string, object, string] => [
      `${part} of ${slot} that drops unknown keys`,
      {
        [slot]: {
          open: {
            ...{ method: 'POST', summary: 'Open', response: 'Opened.' },
            ...(slot === 'routes'
              ? { path: '/-/door', anonymous: true }
              : { path: '/door', permission: 'portcullis:door:open' }),
            [part]: z.object({ id: z.string() }),
          },
        },
      },
      `features.door.${slot}.open.${part}: drops unknown keys; use z.strictObject`,
    ]),
  ),
  [
    'a query that is no object',
    {
      routes: {
        open: {
          ...{ method: 'GET', path: '/-/door', anonymous: true, summary: 'Open' },
          ...{ response: 'Opened.', query: z.string() },
        },
      },
    },
    'features.door.routes.open.query: must be a z.strictObject',
  ],
  ['create that is no function', { create: 1 }, 'features.door.create: must be a function'],
  [
    'a status that a dependency causes',
    { problems: { door_x: { status: 503, title: 'X' } } },
    'features.door.problems.door_x.status: must be one of 400',
  ],
  [
    'a problem of another name',
    { problems: { closed: { status: 403, title: 'X' } } },
    'features.door.problems.closed: must begin with door_, in lower case',
  ],
  [
    'a problem of the gateway',
    { problems: { banned: { status: 403, title: 'X' } } },
    'features.door.problems.banned: must begin with door_',
  ],
  [
    'a problem of the gateway that begins with the name',
    { name: 'rate', problems: { rate_limited: { status: 403, title: 'X' } } },
    'features.rate.problems.rate_limited: is a code of the gateway; choose another',
  ],
  [
    'the reason of a refusal by the gateway',
    { name: 'token', problems: { token_revoked: { status: 403, title: 'X' } } },
    'features.token.problems.token_revoked: is a code of the gateway; choose another',
  ],
  [
    'an error of OAuth',
    { name: 'invalid', problems: { invalid_grant: { status: 403, title: 'X' } } },
    'features.invalid.problems.invalid_grant: is a code of the gateway; choose another',
  ],
  [
    'a dependency of the gateway',
    { name: 'key', problems: { key_set: { status: 403, title: 'X' } } },
    'features.key.problems.key_set: is a code of the gateway; choose another',
  ],
  [
    'the end of a stream',
    { name: 'stream', problems: { stream_ended: { status: 403, title: 'X' } } },
    'features.stream.problems.stream_ended: is a code of the gateway; choose another',
  ],
  [
    'a metric of another name',
    { metrics: { door_opened: { help: 'X' } } },
    'features.door.metrics.door_opened: must begin with door_ and end with _total',
  ],
  [
    'too many series',
    {
      metrics: {
        door_total: { help: 'X', labels: { a: Array.from({ length: 101 }, (_, at) => `${at}`) } },
      },
    },
    'features.door.metrics.door_total.labels: must have at most 100 series in all',
  ],
  [
    'a variable of another name',
    { variables: { ORIGIN_URL: z.string() } },
    'features.door.variables.ORIGIN_URL: must begin with DOOR_',
  ],
  [
    'a variable without a schema',
    { variables: { DOOR_X: 'text' } },
    'features.door.variables.DOOR_X: must be a zod schema',
  ],
  [
    'a field with an odd name',
    { auditFields: ['a b'] },
    'features.door.auditFields[0]: must be a name such as ticket',
  ],
  [
    'a key with an odd name',
    { keys: { 'a:b': 'X' } },
    'features.door.keys["a:b"]: must be lower-case letters',
  ],
  [
    'a path of the gateway',
    {
      routes: {
        x: { method: 'GET', path: '/-/metrics', anonymous: true, summary: 'X', response: 'X' },
      },
    },
    'features.door.routes.x.path: must begin with /-/door',
  ],
  [
    'a route that is neither open nor guarded',
    { routes: { x: { method: 'GET', path: '/-/door', summary: 'X', response: 'X' } } },
    'features.door.routes.x: requires exactly one of permission and anonymous',
  ],
  [
    'a call with a permission of the gateway',
    {
      operatorCalls: {
        x: {
          method: 'GET',
          path: '/door',
          permission: 'portcullis:bans:list',
          summary: 'X',
          response: 'X',
        },
      },
    },
    'features.door.operatorCalls.x.permission: must be portcullis:door:<verb>',
  ],
  [
    'a problem that it does not declare',
    {
      routes: {
        x: {
          method: 'GET',
          path: '/-/door',
          anonymous: true,
          summary: 'X',
          response: 'X',
          problems: ['door_x'],
        },
      },
    },
    'features.door.routes.x.problems: unknown problem door_x; declare it in problems',
  ],
])('%s is a mistake when the feature is defined', (_, changes, message) => {
  const [mistake, ...others] = mistakesOf(() => defined(changes))
  expect(mistake).toContain(message)
  expect(others).toEqual([])
})

const described = { summary: 'X', response: 'X' }

test('two routes with the same method and path are a mistake', () => {
  const route = (path: string) => ({ method: 'GET', path, anonymous: true, ...described })
  const routes = { one: route('/-/door/:id'), two: route('/-/door/:name') }
  expect(mistakesOf(() => defined({ routes }))).toEqual([
    'features.door.routes.two.path: one has the same method and path',
  ])
})

test('two features with one name, problem, metric or variable are a mistake of the policy', () => {
  const shared = {
    problems: { door_mat_x: { status: 403, title: 'X' } },
    metrics: { door_mat_total: { help: 'X' } },
    variables: { DOOR_MAT_X: z.optional(z.string()) },
  }
  const [one, other] = [defined(shared), defined({ name: 'doorMat', ...shared })]
  expect(mistakesOf(() => policyWith(one, other))).toEqual([
    'features.doorMat.problems.door_mat_x: door() declares it as well',
    'features.doorMat.metrics.door_mat_total: door() declares it as well',
    'features.doorMat.variables.DOOR_MAT_X: door() declares it as well',
  ])
  expect(mistakesOf(() => policyWith(defined({}), defined({})))).toEqual([
    'features: door is the name of two features; rename one of them',
  ])
})

test('a feature that another one needs is named, with where it comes from', () => {
  expect(mistakesOf(() => policyWith(defined({ requires: ['openapi', 'bell'] })))).toEqual([
    "features: door() needs openapi(); import { openapi } from 'portcullis/openapi'",
    "features: door() needs bell(); add it to the policy's features",
  ])
  expect(() => policyWith(openapi(), defined({ requires: ['openapi'] }))).not.toThrow()
})

test('mistakes that the feature finds refuse the policy, and so does an error in its search', () => {
  const finds = defined({ mistakesIn: () => ['routes: none for the door'] })
  expect(mistakesOf(() => policyWith(finds))).toEqual(['features.door: routes: none for the door'])
  const breaks = defined({
    mistakesIn() {
      throw new Error('broken')
    },
  })
  expect(mistakesOf(() => policyWith(breaks))).toEqual(['features.door.mistakesIn: threw broken'])
})

let gateway: TestGateway
let token: string
beforeAll(async () => {
  gateway = await startGateway()
  token = await gateway.token({ roles: ['reader'] })
})
afterAll(() => gateway?.close())
afterEach(() => vi.restoreAllMocks())

test.each<[string, object, string]>([
  [
    'throws',
    {
      create: () => {
        throw new Error('no door')
      },
    },
    'features.door.create: threw no door',
  ],
  [
    'is async',
    { create: async () => ({}) },
    'features.door.create: must return an object, and not a promise',
  ],
  [
    'leaves out a handler',
    { routes: { x: { method: 'GET', path: '/-/door', anonymous: true, ...described } } },
    'features.door.create: routes.x must be a function',
  ],
  [
    'returns odd stages',
    { create: () => ({ stagesOf: 1 }) },
    'features.door.create: stagesOf must be a function',
  ],
  [
    'has a stage at an unknown place',
    { create: () => ({ stagesOf: () => ({ before: { run() {} } }) }) },
    'features.door.stagesOf: before: must be arrival, admitted, response',
  ],
  [
    'has a stage without a function',
    { create: () => ({ stagesOf: () => ({ arrival: {} }) }) },
    'features.door.stagesOf: arrival: run must be a function',
  ],
  [
    'names an unknown limit',
    {
      routes: {
        x: { method: 'GET', path: '/-/door', anonymous: true, limits: ['few'], ...described },
      },
    },
    'features.door.routes.x.limits: unknown limit few',
  ],
])('create that %s refuses the start', (_, changes, message) => {
  expect(mistakesOf(() => gateway.isolate(policyWith(defined(changes))))).toEqual([message])
})

test('a variable that is missing or wrong refuses the start, with its name', () => {
  const needs = defined({ variables: { DOOR_CODE: z.string().check(z.minLength(4)) } })
  expect(mistakesOf(() => gateway.isolate(policyWith(needs)))[0]).toMatch(/^DOOR_CODE: /)
})

/** Sends a request through a stage, at each place of the pipeline. */
async function repliesWith(run: FeatureStage['run']) {
  vi.spyOn(console, 'error').mockImplementation(() => {})
  const replies = []
  for (const place of ['arrival', 'admitted', 'response'] as const) {
    const feature = defined({ create: () => ({ stagesOf: () => ({ [place]: { run } }) }) })
    const before = gateway.originCalls()
    const response = await gateway
      .isolate(policyWith(feature))
      .request('https://gateway.test/orders', { headers: { authorization: `Bearer ${token}` } })
    replies.push({
      status: response.status,
      text: await response.text(),
      reached: gateway.originCalls() - before,
      decision: gateway.events.at(-1)?.decision,
    })
  }
  return replies
}

test.each<[string, FeatureStage['run']]>([
  [
    'throws a plain error',
    () => {
      throw new Error('the secret')
    },
  ],
  [
    'throws what is no error',
    () => {
      throw 'the secret'
    },
  ],
  [
    'throws an HTTPException',
    () => {
      throw new HTTPException(200, { message: 'the secret' })
    },
  ],
  [
    'rejects',
    async () => {
      throw new Error('the secret')
    },
  ],
  ['neither continues nor answers', async () => {}],
  [
    'continues after it has ended',
    async (_, next) => {
      setTimeout(() => {
        void (async () => next())().catch(() => {})
      }, 0)
    },
  ],
])('a stage that %s is 500 without its text, and no request reaches the origin', async (_, run) => {
  for (const reply of await repliesWith(run)) {
    expect(reply).toMatchObject({ status: 500, reached: 0, decision: 'error' })
    expect(JSON.parse(reply.text).code).toBe('internal_error')
    expect(reply.text).not.toContain('secret')
  }
})

test('a stage that does not wait for the rest of the pipeline is waited for', async () => {
  const replies = await repliesWith(async (_, next) => void next())
  for (const reply of replies) expect(reply).toMatchObject({ status: 200, reached: 1 })
})

test('a stage never weakens the guards around it', async () => {
  const feature = defined({
    create: () => ({
      stagesOf: () => ({ arrival: { run: (_: unknown, next: () => unknown) => next() } }),
    }),
  })
  const before = gateway.originCalls()
  const app = new Hono().route('/', gateway.isolate(policyWith(feature)))
  const other = await gateway.token({ roles: [] })
  for (const [credential, status] of [
    ['x.y.z', 401],
    [other, 403],
  ] as const) {
    const headers = { authorization: `Bearer ${credential}` }
    const response = await app.request('https://gateway.test/orders', { headers })
    expect(response.status).toBe(status)
  }
  expect(gateway.originCalls()).toBe(before)
})

test('the names of all calls of the gateway are reserved', async () => {
  const { body } = await gateway.send('/-/openapi.json')
  const camel = (text: string) => text.replaceAll(/-([a-z])/g, (_, letter) => letter.toUpperCase())
  const names = [
    ...Object.keys(body.paths).map(
      (path) => /^\/(?:-\/)?(?:admin\/)?([^/]+)/.exec(path)?.[1] ?? '',
    ),
    ...OPERATOR_PERMISSIONS.map((permission) => permission.split(':')[1] ?? ''),
  ].filter((name) => /^[a-z-]+$/.test(name))
  expect(names.length).toBeGreaterThan(20)
  expect([...new Set(names.map(camel))].filter((name) => !isReserved(name))).toEqual([])
})
