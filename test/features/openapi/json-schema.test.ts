/** Schemas of the calls of the gateway are described as zod describes them. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import * as z from 'zod/mini'
import { authorizationCode } from '../../../src/features/authorization-code/index.ts'
import { codeFlowOperations } from '../../../src/features/authorization-code/operations.ts'
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import { console as consoleFeature } from '../../../src/features/console/index.ts'
import { mcp } from '../../../src/features/mcp/index.ts'
import { toJsonSchema } from '../../../src/features/openapi/json-schema.ts'
import { oauthOperations, publicOperations } from '../../../src/features/openapi/own-operations.ts'
import { operators } from '../../../src/features/operators/index.ts'
import { plans } from '../../../src/features/plans/index.ts'
import { relations } from '../../../src/features/relations/index.ts'
import { signIn } from '../../../src/features/sign-in/index.ts'
import { signInOperations } from '../../../src/features/sign-in/pages/sessions-view.ts'
import { signalOperations } from '../../../src/features/signals/routes.ts'
import type { Feature } from '../../../src/gateway/feature.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import type { Operation, ToJsonSchema } from '../../../src/routes/operation.ts'
import { ISSUER, startGateway, type TestGateway } from '../operators/gateway.ts'
import { MODEL } from '../operators/relation-model.ts'

const own: Operation[] = []
/** Collects what `openapi()` describes. */
const observer: Feature = {
  name: 'observer',
  presence: 'more',
  create: ({ contributed }) => ({
    apps() {
      own.push(...contributed().calls.map(({ operation }) => operation))
      return []
    },
  }),
}

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway({
    policy: definePolicy({
      roles: { operator: ['portcullis:*'] },
      limits: { plan: plans({ plans: { free: '100/min' }, default: 'free' }) },
      relations: relations({ model: MODEL, issuers: [] }),
      features: [
        operators(),
        authorizationServer(),
        signIn(),
        authorizationCode({ registration: { perAddress: 1 } }),
        consoleFeature(),
        observer,
      ],
      routes: mcp({
        path: '/mcp',
        permission: 'orders:read',
        tools: { read: { arguments: 'any' } },
      }),
    }),
    variables: {
      ISSUER_CLIENTS: JSON.stringify([
        { issuer: ISSUER, id: 'gateway', secret: 'secret', signIn: { name: 'Example' } },
      ]),
    },
  })
})
afterAll(() => gateway?.close())

const byZod: ToJsonSchema = (schema, use) => {
  const { $schema: _, ...described } = z.toJSONSchema(schema, { io: use, unrepresentable: 'any' })
  return described
}

test('schemas of all calls', () => {
  const operations = [
    ...own,
    ...oauthOperations(),
    ...publicOperations(true),
    ...codeFlowOperations(true),
    ...signInOperations(),
    ...signalOperations(),
  ]
  expect(operations.length).toBeGreaterThan(50)
  for (const id of ['approveMcpTool', 'assignPlan', 'openConsole', 'withdrawConsent'])
    expect(operations).toContainEqual(expect.objectContaining({ id }))
  for (const { id, params, query, body, responses } of operations) {
    for (const schema of [params, query, body?.schema])
      if (schema !== undefined)
        expect(toJsonSchema(schema, 'input'), id).toEqual(byZod(schema, 'input'))
    for (const { schema } of Object.values(responses))
      if (schema !== undefined)
        expect(toJsonSchema(schema(), 'output'), id).toEqual(byZod(schema(), 'output'))
  }
})

test.each([
  z.object({ a: z.string() }),
  z.catchall(z.object({ a: z.string() }), z.number()),
  ...[z.bigint(), z.literal(['a', 'b']), z.tuple([z.string()])],
  ...[z.readonly(z.string()), z.catch(z.string(), ''), z.intersection(z.string(), z.string())],
  ...[z.lazy(() => z.string()), z.never(), z.date(), z.set(z.string()), z.custom()],
  z.templateLiteral(['a', z.string()]),
])('%# is a kind that no call of the gateway has, and is refused', (schema) => {
  for (const use of ['input', 'output'] as const)
    expect(() => toJsonSchema(z.strictObject({ schema }), use)).toThrow(TypeError)
})
