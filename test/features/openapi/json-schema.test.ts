/** Schemas of the calls of the gateway are described as zod describes them. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import * as z from 'zod/mini'
import { codeFlowOperations } from '../../../src/features/authorization-code/operations.ts'
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import { toJsonSchema } from '../../../src/features/openapi/json-schema.ts'
import { oauthOperations, publicOperations } from '../../../src/features/openapi/own-operations.ts'
import { operators } from '../../../src/features/operators/index.ts'
import { relations } from '../../../src/features/relations/index.ts'
import { signInOperations } from '../../../src/features/sign-in/pages/sessions-view.ts'
import { signalOperations } from '../../../src/features/signals/routes.ts'
import type { Feature } from '../../../src/gateway/feature.ts'
import type { Operation, ToJsonSchema } from '../../../src/routes/operation.ts'
import { policyOf, startGateway, type TestGateway } from '../operators/gateway.ts'
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
    policy: policyOf({
      relations: relations({ model: MODEL, issuers: [] }),
      features: [operators(), authorizationServer(), observer],
    }),
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
  for (const { id, params, query, body, responses } of operations) {
    for (const schema of [params, query, body?.schema])
      if (schema !== undefined)
        expect(toJsonSchema(schema, 'input'), id).toEqual(byZod(schema, 'input'))
    for (const { schema } of Object.values(responses))
      if (schema !== undefined)
        expect(toJsonSchema(schema(), 'output'), id).toEqual(byZod(schema(), 'output'))
  }
})
