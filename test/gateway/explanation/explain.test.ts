/** The explanation of a decision: every stage up to the one that decides, and no credential. */
import { definePolicy } from 'portcullis'
import { relations } from 'portcullis/relations'
import { signIn } from 'portcullis/sign-in'
import { type Explanation, policyTester } from 'portcullis/testing'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'

const model = {
  schema_version: '1.1',
  type_definitions: [
    { type: 'user' },
    {
      type: 'note',
      relations: { viewer: { this: {} } },
      metadata: { relations: { viewer: { directly_related_user_types: [{ type: 'user' }] } } },
    },
  ],
}
const policy = definePolicy({
  roles: { reader: ['notes:read'], writer: ['notes:*'] },
  limits: { standard: { limit: 1, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' } },
  relations: relations({ model, issuers: ['https://issuer.test'] }),
  routes: [
    { method: 'GET', path: '/notes', permission: 'notes:read', limits: ['standard'] },
    {
      method: 'GET',
      path: '/notes/:id',
      permission: 'notes:read',
      relation: { object: 'note:{params.id}', relation: 'viewer' },
      forwardAuthorization: true,
      forwardCookies: true,
    },
    {
      method: 'POST',
      path: '/notes',
      permission: 'notes:write',
      input: { body: z.strictObject({ text: z.string().min(1) }) },
    },
  ],
})
const reader = { sub: 'alice', roles: ['reader'] }
const writer = { sub: 'bob', roles: ['writer'] }

const stageIn = ({ stages }: Explanation, name: string) =>
  stages.find(({ stage }) => stage === name)
const namesIn = ({ stages }: Explanation) => stages.map(({ stage }) => stage)

describe('explain', () => {
  test('an allowed request passes every stage, in the order of the pipeline', async () => {
    const explained = await policyTester(policy).explain('POST /notes', {
      as: writer,
      body: { text: 'x' },
    })
    expect(namesIn(explained)).toEqual([
      'shedLoad',
      'canonicalPath',
      'sanitizeHeaders',
      'clientAddress',
      'route',
      'limitBody',
      'banOffenders',
      'throttle',
      'authenticate',
      'admit',
      'authorize',
      'validate',
      'readmit',
      'proxy',
    ])
    expect(explained).toMatchObject({ decision: 'allow', status: 200, reason: 'ok' })
    expect(explained.origin?.headers).toMatchObject({
      'x-auth-subject': 'bob',
      'x-auth-roles': 'writer',
    })
    expect(stageIn(explained, 'proxy')?.outcome).toBe('answered')
  })

  test('the last stage of a refused request is the one that refused it, and names the reason', async () => {
    const tester = policyTester(policy)
    const refusals = [
      ['GET /nothing', {}, 'route', 'no route of the policy has this path'],
      ['PUT /notes', {}, 'route', 'routes of the policy have this path, but not this method'],
      ['GET /notes%2f1', {}, 'canonicalPath', 'two servers could read the path'],
      ['GET /notes', {}, 'authenticate', 'the request has no credential'],
      ['GET /notes', { as: { ...reader, expiresInSeconds: -60 } }, 'authenticate', 'exp'],
      [
        'GET /notes',
        { as: { ...reader, header: { typ: 'JWT' } } },
        'authenticate',
        'expected ["at+jwt"]',
      ],
      ['POST /notes', { as: reader, body: {} }, 'authorize', 'it is of writer'],
      ['GET /notes/7', { as: reader }, 'authorize', 'the relation note#viewer'],
      ['POST /notes', { as: writer, body: { text: '' } }, 'validate', 'body/text: '],
    ] as const
    for (const [line, request, stage, why] of refusals) {
      const explained = await tester.explain(line, request)
      const last = explained.stages.at(-1)
      expect({ line, stage: last?.stage, outcome: last?.outcome }).toEqual({
        line,
        stage,
        outcome: 'refused',
      })
      expect(last?.why).toContain(why)
      expect(explained).toMatchObject({ decision: 'deny', origin: null })
    }
  })

  test('a route with browser sessions says that there is none, and what it demands of a login', async () => {
    const row = { method: 'GET', permission: 'notes:read' } as const
    const tester = policyTester(
      definePolicy({
        roles: { reader: ['notes:read'] },
        limits: {},
        features: [signIn()],
        routes: [
          { ...row, path: '/page', session: 'browser' },
          { ...row, path: '/admin', session: { acr: ['mfa'] } },
        ],
      }),
    )
    const navigation = { accept: 'text/html', 'sec-fetch-mode': 'navigate' }
    const page = await tester.explain('GET /page', { headers: navigation })
    expect(page).toMatchObject({ decision: 'deny', status: 303, origin: null })
    expect(page.stages.at(-1)?.why).toBe(
      'no session and no token; a page in a window is redirected to the login, other requests get 401',
    )
    expect(await tester.explain('GET /page', {})).toMatchObject({
      status: 401,
      reason: 'sign_in_required:no_session',
    })
    expect(await tester.explain('GET /page', { as: reader })).toMatchObject({ decision: 'allow' })
    const explained = await tester.explain('GET /admin', { as: reader })
    expect(explained).toMatchObject({
      status: 401,
      reason: 'insufficient_user_authentication:acr',
      origin: null,
    })
    expect(explained.stages.at(-1)).toMatchObject({
      stage: 'stepUp',
      outcome: 'refused',
      read: { accepted: ['mfa'] },
      why: 'the route demands a login of the kind mfa; the acr of the token is none of these',
    })
    const strong = { as: { ...reader, claims: { acr: 'mfa' } } }
    expect(await tester.explain('GET /admin', strong)).toMatchObject({ decision: 'allow' })
  })

  test('a request counts, and the explanation names the limit that is used up', async () => {
    const tester = policyTester(policy)
    const first = await tester.explain('GET /notes', { as: reader })
    expect(stageIn(first, 'admit')?.read).toMatchObject({
      limits: [{ name: 'standard', limit: 1, remaining: 0 }],
    })
    const second = await tester.explain('GET /notes', { as: reader })
    expect(second.stages.at(-1)).toMatchObject({
      stage: 'admit',
      outcome: 'refused',
      why: 'the limit standard is used up; the next request fits in 60 s',
    })
  })

  test('contains no token and no cookie', async () => {
    const tester = policyTester(policy, { relations: () => true })
    const token = await tester.token(reader)
    const explained = await tester.explain('GET /notes/7', {
      token,
      headers: { cookie: 'session=secret', dpop: 'proof' },
    })
    expect(explained.origin?.headers).toMatchObject({
      authorization: '(present, not shown)',
      cookie: '(present, not shown)',
    })
    const text = JSON.stringify(explained)
    for (const secret of [token, 'secret', 'proof"']) expect(text).not.toContain(secret)
    const refused = await tester.explain('GET /notes/7', { token: `${token}x` })
    expect(JSON.stringify(refused)).not.toContain(token)
  })

  test('decides as a request does', async () => {
    for (const as of [reader, writer, undefined]) {
      const { status, reason, route } = await policyTester(policy).request('GET /notes', { as })
      expect(await policyTester(policy).explain('GET /notes', { as })).toMatchObject({
        status,
        reason,
        route,
      })
    }
  })

  test('refuses a path of the gateway itself, which no policy decides', async () => {
    await expect(policyTester(policy).explain('GET /-/healthz')).rejects.toThrow(
      'explain: GET /-/healthz is a path of the gateway, which no policy decides',
    )
  })
})
