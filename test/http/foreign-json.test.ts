/** Texts from outside have one reader: two programs must not read two values from one text. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import * as z from 'zod/mini'
import { clientVariables } from '../../src/features/authorization-server/schemas/client.ts'
import { jsonText } from '../../src/features/openapi-routes/text.ts'
import { refuseAmbiguousJson } from '../../src/http/strict-json.ts'

const SOURCE = join(import.meta.dirname, '../../src')

/** Files that parse only texts which the gateway, its operator or its own store has written. */
const OWN: Readonly<Record<string, string>> = {
  'audit/blocks/block.ts': 'lines of the audit chain',
  'audit/blocks/line.ts': 'lines of the audit chain',
  'audit/blocks/written-line.ts': 'parts of an event, whose form a pattern has checked',
  'audit/chain-export.ts': 'exports of the audit chain, whose schema and hashes are checked',
  'audit/erasure.ts': 'columns of the audit database',
  'audit/hour-counts.ts': 'columns of the audit database',
  'audit/redis/overflow.ts': 'audit events in Redis',
  'audit/sql/audit-row.ts': 'columns of the audit database',
  'audit/sql/tenant-letters.ts': 'columns of the audit database',
  'features/console/mcp-calls.ts': 'a definition that the gateway has stored, compared by its hash',
  'features/console/mcp.ts': 'a definition that the gateway has stored',
  'features/console/script.ts': 'data of the gateway, in the browser',
  'features/mcp/stages.ts': 'an id that the gateway has sealed',
  'features/origins/audiences.ts': 'ISSUERS, which its schema parses strictly at the start',
  'features/sign-in/provider-sessions.ts': 'tokens that the gateway has sealed',
  'http/exact-numbers.ts': 'a text that the strict reader has accepted',
  'http/strict-json.ts': 'the strict reader',
  'observability/metrics/exposition.ts': 'names of series in Redis',
  'redis/reply.ts': 'replies of Redis',
  'redis/rest-by-fetch.ts': 'replies of Redis',
  'routes/admin/call.ts': 'a body that the strict reader has accepted',
  'runtimes/audit/consumer.ts': 'messages of the queue, and a variable',
  'runtimes/node/redis/import/subjects.ts': 'records in Redis',
  'runtimes/node/redis/import/values.ts': 'records in Redis',
  'testing/decision.ts': 'responses of the gateway under test',
}

test('every text from outside goes through the strict reader', () => {
  const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
  const parsing = files.filter(
    (file) =>
      file.endsWith('.ts') && /\bJSON\.parse\(/.test(readFileSync(join(SOURCE, file), 'utf8')),
  )
  expect(parsing.toSorted()).toEqual(Object.keys(OWN).toSorted())
})

test.each([
  ['{"a":1,"a":2}', true],
  ['{"b":{"a":1,"\\u0061":2}}', true],
  [`${'['.repeat(17)}${']'.repeat(17)}`, true],
  ['{"a":1}', false],
  ['<p>Busy', false],
  ['', false],
  ['eyJhbGciOiJFUzI1NiJ9.e30.c2ln', false],
])('a text that a library parses is refused only if it is ambiguous: %s', (text, isRefused) => {
  const read = () => refuseAmbiguousJson(text)
  if (isRefused) expect(read).toThrow()
  else expect(read).not.toThrow()
})

test('a parameter with a name twice stays text, so that its schema refuses it', () => {
  const schema = jsonText(z.object({ amount: z.number() }))
  expect(schema.safeParse('{"amount":1}').data).toEqual({ amount: 1 })
  expect(schema.safeParse('{"amount":1,"amount":1000}').success).toBe(false)
})

test('a parameter with the name __proto__ stays text, because zod does not check its value', () => {
  const schema = jsonText(z.record(z.string(), z.number()))
  expect(schema.safeParse('{"amount":1}').data).toEqual({ amount: 1 })
  for (const name of ['__proto__', '\\u005f_proto__'])
    expect(schema.safeParse(`{"amount":1,"${name}":{"admin":true}}`).success).toBe(false)
})

test('CLIENTS with a name twice are refused', () => {
  const id = '"id":"0190f8a0-7c3a-7000-8000-000000000001"'
  const read = (more: string) =>
    clientVariables.shape.CLIENTS.safeParse(
      `[{${id},"grants":["client_credentials"],"secretSha256":"${'A'.repeat(43)}"${more}}]`,
    ).success
  expect([read(''), read(',"roles":["a"]'), read(',"roles":["a"],"roles":["b"]')]).toEqual([
    ...[true, true, false],
  ])
})
