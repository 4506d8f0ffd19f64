import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { signatures } from '../../src/features/signatures/index.ts'
import { createAuthorizer } from '../../src/parts.ts'
import { inspected } from './app.ts'
import { readerOf } from './reader.ts'

const JSON_TYPE = 'application/json'
const observing = { mode: 'observe' } as const

describe('a request that a stage in observe mode would refuse is forwarded byte for byte and recorded:', () => {
  test.each([
    ['a repeated name in a query', '?a=1&a=2', undefined, undefined, 'query_repeated'],
    ['a control', '?a=%07', undefined, undefined, 'query_control'],
    ['a broken escape', '?a=%4', undefined, undefined, 'query_encoding'],
    ['invalid JSON', '', '{a:1}', JSON_TYPE, 'body_syntax'],
    ['a prototype', '', '{"__proto__":1}', JSON_TYPE, 'body_prototype_name'],
    ['invalid UTF-8', '', new Uint8Array([0x22, 0xff, 0x22]), JSON_TYPE, 'body_encoding'],
  ])('%s', async (_, query, body, type, check) => {
    const { send, reached, observed } = inspected(observing)
    expect((await send(query, body, type)).status).toBe(200)
    expect(observed).toEqual([[`malformed_request:${check}`]])
    const sent = typeof body === 'string' ? new TextEncoder().encode(body) : body
    expect(reached).toEqual([{ query, body: sent ?? new Uint8Array() }])
  })

  test('a body that cannot be inspected', async () => {
    const { send, reached, observed } = inspected(observing)
    expect((await send('', '<a/>', 'application/xml')).status).toBe(200)
    expect(observed).toEqual([['unsupported_media_type']])
    expect(reached).toHaveLength(1)
  })

  test('forbidden calls and arguments', async () => {
    const authorizer = createAuthorizer(new Map([['reader', ['mcp:use']]]))
    const tools = {
      find: { arguments: z.strictObject({ text: z.string() }) },
      remove: { permission: 'books:delete' },
    }
    const jsonRpc = { methods: { 'tools/call': true }, tools } as const
    const { send, reached, observed } = inspected(
      { ...observing, authorizer, jsonRpc },
      readerOf('reader'),
    )
    const call = (method: string, params?: object) =>
      send('', JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }), JSON_TYPE)
    await call('shutdown')
    await call('tools/call', { name: 'format' })
    await call('tools/call', { name: 'remove' })
    await call('tools/call', { name: 'find', arguments: { words: 1 } })
    await call('tools/call', { name: 'find', arguments: { text: 'x' } })
    expect(observed).toEqual([
      ['call_refused:method'],
      ['call_refused:tool'],
      ['permission_missing:books:delete'],
      ['invalid_input:body/params/arguments/text'],
      undefined,
    ])
    expect(reached).toHaveLength(5)
  })

  test('a form error and a signature', async () => {
    const { send, observed } = inspected({ ...observing, signatures: signatures() })
    expect((await send(`?a=${encodeURIComponent("x' or 1=1 --")}&a=2`)).status).toBe(200)
    expect(observed).toEqual([
      ['malformed_request:query_repeated', 'signature_matched:sql_injection.break_out'],
    ])
  })
})

describe('observe mode still refuses', () => {
  test('a body that is too large', async () => {
    const { send, reached } = inspected(observing)
    const chunk = new Uint8Array(1_048_576).fill(0x20)
    let sent = 0
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => (sent++ < 5 ? controller.enqueue(chunk) : controller.close()),
    })
    expect((await send('', endless, JSON_TYPE)).status).toBe(413)
    expect(reached).toEqual([])
  })

  test('a truncated body', async () => {
    const { send, reached, reasons } = inspected(observing)
    const broken = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.error(new Error('gone')),
    })
    expect((await send('', broken, JSON_TYPE)).status).toBe(400)
    expect(reasons).toEqual(['body_incomplete'])
    expect(reached).toEqual([])
  })

  test('a call that requires a permission, without a token', async () => {
    const authorizer = createAuthorizer(new Map())
    const jsonRpc = { methods: { ping: { permission: 'a:b' } } }
    const { send, reached } = inspected({ ...observing, authorizer, jsonRpc })
    const answer = await send('', '{"jsonrpc":"2.0","id":1,"method":"ping"}', JSON_TYPE)
    expect(answer.status).toBe(401)
    expect(reached).toEqual([])
  })
})
