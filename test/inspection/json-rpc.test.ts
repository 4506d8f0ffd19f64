import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { createAuthorizer } from '../../src/access/permissions.ts'
import type { InspectOptions } from '../../src/middleware/inspect.ts'
import { shapeOf, type Worth } from '../features/signatures/shapes.ts'
import { usualOrLong } from '../harness/long.ts'
import { inspected } from './app.ts'
import { readerOf } from './reader.ts'

const SHAPES = usualOrLong(1_500, 4_000)
const MAX_BATCH = 4
const JSON_TYPE = 'application/json'

const options: InspectOptions = {
  authorizer: createAuthorizer(new Map([['reader', ['books:read']]])),
  jsonRpc: {
    methods: { 'tools/list': true, 'tools/call': true },
    tools: {
      list: true,
      search: {
        permission: 'books:read',
        arguments: z.strictObject({ text: z.string().min(1), limit: z.int().optional() }),
      },
      remove: { permission: 'books:delete', arguments: z.strictObject({ id: z.int() }) },
    },
    maxBatch: MAX_BATCH,
  },
}

const reader = readerOf('reader')

const ping = (id: unknown) => JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/list' })
const call = (params: unknown) =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })

/** Returns a seeded generator of numbers below a bound. */
function drawing(seed: string) {
  let drawn = 0
  return (below: number): number =>
    createHash('sha256').update(`${seed} ${drawn++}`).digest().readUInt32BE() % below
}

describe('a route of JSON-RPC [S63]', () => {
  test(`answers each of ${SHAPES} shapes as its parts require, and only valid ones arrive`, async () => {
    const { send, reached } = inspected(options, reader)
    const counted = new Map<Worth, number>()
    for (let at = 0; at < SHAPES; at++) {
      const { text, worth } = shapeOf(drawing(`shape ${at}`), MAX_BATCH)
      const { status } = await send('', text, JSON_TYPE)
      expect([status, text]).toEqual([worth, text])
      const bodies = reached.splice(0).map(({ body }) => new TextDecoder().decode(body))
      expect(bodies).toEqual(worth === 200 ? [text] : [])
      counted.set(worth, (counted.get(worth) ?? 0) + 1)
    }
    // Each status occurred often enough to be meaningful.
    for (const worth of [200, 400, 403, 422] as const)
      expect(counted.get(worth) ?? 0, `${worth}`).toBeGreaterThan(SHAPES / 40)
  })

  test('an id is unique in a batch, and 1 is different from "1"', async () => {
    const { send, reached, reasons } = inspected(options, reader)
    const statuses = []
    for (const ids of [
      [1, '1'],
      [1, 2, 1],
      ['a', 'a'],
    ])
      statuses.push((await send('', `[${ids.map(ping)}]`, JSON_TYPE)).status)
    statuses.push(
      (await send('', `[${ping(1)},${ping(1).replace(':1,', ':1.0,')}]`, JSON_TYPE)).status,
    )
    expect(statuses).toEqual([200, 400, 400, 400])
    expect(reasons).toEqual(['json_rpc_id', 'json_rpc_id', 'json_rpc_id'])
    expect(reached).toHaveLength(1)
  })

  test('an anonymous caller needs a token for calls that require a permission, and only for those', async () => {
    const { send, reached } = inspected(options)
    expect((await send('', ping(1), JSON_TYPE)).status).toBe(200)
    expect((await send('', call({ name: 'list' }), JSON_TYPE)).status).toBe(200)
    const search = call({ name: 'search', arguments: { text: 'x' } })
    expect((await send('', search, JSON_TYPE)).status).toBe(401)
    expect(reached).toHaveLength(2)
  })

  test('errors point into the body without repeating it', async () => {
    const { send, reached } = inspected(options, reader)
    const wrong = call({ name: 'search', arguments: { text: '', secret: 'hunter2' } })
    const { status, text } = await send('', `[${ping(7)},${wrong}]`, JSON_TYPE)
    expect(status).toBe(422)
    expect(text).not.toMatch(/hunter2|secret/)
    const paths = JSON.parse(text).errors.map((error: { path: string }) => error.path)
    expect(paths.sort()).toEqual(['/1/params/arguments', '/1/params/arguments/text'])
    expect(reached).toEqual([])
  })

  test.each([
    ['another JSON type', 'application/vnd.api+json', undefined],
    ['text', 'text/plain', undefined],
    ['a form', 'application/x-www-form-urlencoded', undefined],
    ['a compressed body', JSON_TYPE, 'br'],
  ])('refuses %s', async (_, type, encoding) => {
    const { send, reached } = inspected(options, reader)
    expect((await send('', ping(1), type, encoding)).status).toBe(415)
    expect(reached).toEqual([])
  })

  test('refuses a request without a body', async () => {
    const { send, reached } = inspected(options, reader)
    expect((await send('')).status).toBe(415)
    expect((await send('', '', JSON_TYPE)).status).toBe(400)
    expect(reached).toEqual([])
  })

  test('methods can have a permission and a schema', async () => {
    const methods = {
      'orders.get': { permission: 'books:read', params: z.tuple([z.int()]) },
      'orders.drop': { permission: 'books:delete' },
    }
    const { send, reached } = inspected({ ...options, jsonRpc: { methods } }, reader)
    const statuses = []
    for (const part of [
      '"orders.get","params":[7]',
      '"orders.get","params":["7"]',
      '"orders.get"',
      '"orders.drop","params":[7]',
      '"tools/call","params":{"name":"list"}',
    ])
      statuses.push((await send('', `{"jsonrpc":"2.0","id":1,"method":${part}}`, JSON_TYPE)).status)
    expect(statuses).toEqual([200, 422, 422, 403, 403])
    expect(reached).toHaveLength(1)
  })
})
