/** Mistakes in credentials, and what tools say about them. */

import { expect, test } from 'vitest'
import { checkedCredentials } from '../../../cli/policy/credentials.ts'
import { changesInRoute } from '../../../cli/policy/diff-route.ts'
import { Misconfigured } from '../../../src/errors.ts'
import { clientCredentials, secret } from '../../../src/features/credentials/index.ts'
import { origins } from '../../../src/features/origins/index.ts'
import { composeServices } from '../../../src/gateway/compose-services.ts'
import { WORKERS } from '../../../src/gateway/runtime.ts'
import { definePolicy } from '../../../src/index.ts'
import type { PolicyDefinition } from '../../../src/policy/definition.ts'
import type { PolicyRoute } from '../../../src/policy/route.ts'
import { policyTester } from '../../../src/testing/index.ts'

const variable = 'ORIGIN_SECRET_API'
const KEY = secret({ variable, header: 'X-Api-Key' })
const BEARER = secret({ variable, header: 'Authorization', scheme: 'Bearer' })
const TOKEN = clientCredentials({
  tokenEndpoint: 'https://login.example/token',
  client: 'gateway',
  variable,
})
type Fields = Partial<PolicyDefinition<string, string>['routes'][number]>

const policyOf = (fields: Fields, others: object = {}) =>
  definePolicy({
    roles: {},
    limits: {},
    routes: [{ method: 'GET', path: '/orders', anonymous: true, ...fields }],
    ...others,
  } as PolicyDefinition<string, string>)

function mistakesIn(create: () => unknown): readonly string[] {
  try {
    create()
  } catch (error) {
    if (error instanceof Misconfigured) return error.mistakes
    throw error
  }
  return []
}

test.each([
  [{ variable }, 'requires exactly one of header, basic and query'],
  [{ variable, header: 'X-Api-Key', query: 'key' }, 'requires exactly one of header'],
  [{ variable: 'SECRET', header: 'X-Api-Key' }, 'must be a name such as ORIGIN_SECRET_ORDERS'],
  [{ variable, header: 'X-Auth-Subject' }, 'cannot carry a secret'],
  [{ variable, header: 'Cookie' }, 'cannot carry a secret'],
  [{ variable, header: 'Content-Length' }, 'cannot carry a secret'],
  [{ variable, header: 'X_Api_Key' }, 'must be letters, digits and hyphens'],
  [{ variable, query: 'a b' }, 'must be a name of a parameter'],
  [{ variable, basic: 'a:b' }, 'basic'],
  [{ variable, basic: 'a', scheme: 'Bearer' }, 'scheme requires header'],
])('secret(%j) is a mistake', (definition, message) => {
  expect(mistakesIn(() => secret(definition)).join()).toContain(message)
})

test.each([
  [{ client: 'a', variable }, 'requires tokenEndpoint or tokenEndpointVariable'],
  [{ client: 'a', variable, tokenEndpoint: 'http://login.example/token' }, 'must be https'],
  [{ client: 'a', variable, tokenEndpointVariable: 'TOKEN_URL' }, 'ORIGIN_TOKEN_URL_ORDERS'],
])('clientCredentials(%j) is a mistake', (definition, message) => {
  expect(mistakesIn(() => clientCredentials(definition)).join()).toContain(message)
})

test.each<[string, Fields, object, string]>([
  [
    'a caller whose header takes its place',
    { credentials: BEARER, forwardAuthorization: true },
    {},
    'forwardAuthorization: cannot be combined with the header authorization',
  ],
  [
    'a changed header',
    { credentials: KEY, requestHeaders: { remove: ['x-api-key'] }, origin: 'a' },
    { origins: origins({ a: { url: 'https://a.test' } }) },
    'requestHeaders: must not change the header x-api-key',
  ],
  [
    'two owners',
    { credentials: KEY, origin: 'a' },
    { origins: origins({ a: { url: 'https://a.test', credentials: KEY } }) },
    'the origin a has credentials',
  ],
  [
    'a canary that would get them',
    { credentials: KEY, origin: 'a' },
    {
      origins: origins({
        a: { url: 'https://a.test', canary: { origin: 'b', percent: 1 } },
        b: { url: 'https://b.test' },
      }),
    },
    'the origin a has a canary',
  ],
  [
    'an origin whose header a caller sends',
    { origin: 'a', forwardAuthorization: true },
    { origins: origins({ a: { url: 'https://a.test', credentials: TOKEN } }) },
    'forwardAuthorization: cannot be combined',
  ],
  [
    'a text',
    { credentials: 'secret' as never },
    {},
    "must be the result of secret() or clientCredentials() from 'portcullis/credentials'",
  ],
])('a route with credentials and %s is a mistake', (_, fields, others, message) => {
  expect(mistakesIn(() => policyOf(fields, others)).join()).toContain(message)
})

test.each([
  [undefined, 'is missing'],
  ['a-secret\n', 'must be visible ASCII in one line'],
  ['a-secret\r\nX-Auth-Subject: admin', 'must be visible ASCII in one line'],
  ['', 'must be visible ASCII'],
])('the gateway does not start with the secret %j, and does not show it', (value, message) => {
  const environment = {
    UPSTASH_REDIS_REST_URL: 'https://redis.example',
    UPSTASH_REDIS_REST_TOKEN: 'x',
    PUBLIC_URL: 'https://gateway.example',
    ORIGIN_URL: 'https://origin.example',
    ...(value !== undefined && { ORIGIN_SECRET_API: value }),
  } as Parameters<typeof composeServices>[0]
  for (const policy of [
    policyOf({ credentials: KEY }),
    policyOf(
      { origin: 'a' },
      { origins: origins({ a: { url: 'https://a.test', credentials: TOKEN } }) },
    ),
  ]) {
    const mistakes = mistakesIn(() => composeServices(environment, policy, WORKERS))
    expect(mistakes.join()).toContain(`ORIGIN_SECRET_API: ${message}`)
    expect(mistakes.join()).not.toContain('a-secret')
  }
})

test('an explanation names the credentials and the headers with claims, and fetches no token', async () => {
  const policy = policyOf(
    { credentials: TOKEN },
    { identityHeaders: { 'X-Auth-Email': ['email', 'upn'] } },
  )
  const { stages, origin } = await policyTester(policy).explain('GET /orders')
  expect(stages.at(-1)).toMatchObject({
    stage: 'proxy',
    read: {
      credentials: 'access token of the client gateway, with ORIGIN_SECRET_API',
      identityHeaders: ['x-auth-email: email or upn'],
    },
  })
  expect(origin?.headers.authorization).toBeUndefined()
})

test('a test of the policy needs no secret and no authorization server', async () => {
  const decision = await policyTester(policyOf({ credentials: TOKEN })).request('GET /orders')
  expect(decision.allowed).toBe(true)
})

test('a comparison of policies names changed credentials', () => {
  const [before, after] = [policyOf({}), policyOf({ credentials: KEY })].map(
    ({ routes: [route] }) => route as PolicyRoute,
  )
  if (before === undefined || after === undefined) throw new Error('no routes')
  expect([...changesInRoute('GET /orders', before, after)].map(({ text }) => text)).toEqual([
    'GET /orders: credentials at the origin from none to header X-Api-Key from ORIGIN_SECRET_API',
  ])
})

test('the doctor finds the variables of credentials, without their values', () => {
  const policy = policyOf({ credentials: KEY })
  const words = 'header X-Api-Key from ORIGIN_SECRET_API'
  expect(checkedCredentials(policy, {})).toEqual([
    { words, mistakes: ['ORIGIN_SECRET_API: is missing; it is a secret for an origin'] },
  ])
  expect(checkedCredentials(policy, { ORIGIN_SECRET_API: 'never-shown' })).toEqual([
    { words, mistakes: [] },
  ])
})
