import { describe, expect, test } from 'vitest'
import type { InspectOptions } from '../../src/middleware/inspect.ts'
import { inspected } from './app.ts'
import { readerOf } from './reader.ts'

const options: InspectOptions = { jsonRpc: { methods: { ping: true }, maxBatch: 5 } }
const reader = readerOf('reader')

async function answer(body: string) {
  const { send, reached, reasons } = inspected(options, reader)
  const { status } = await send('', body, 'application/json')
  const bodies = reached.map((request) => new TextDecoder().decode(request.body))
  expect(bodies).toEqual(status === 200 ? [body] : [])
  return status === 200 ? 'passed' : `${status} ${reasons[0]}`
}

const message = (members: string) => `{"jsonrpc":"2.0",${members}}`
const ERROR = '"error":{"code":-32000,"message":"declined"}'

describe("a client's response to a request of the server [S63]", () => {
  test.each([
    '"id":99,"result":{}',
    '"result":{"role":"assistant","content":{"type":"text","text":"hi"}},"id":"a"',
    '"id":0,"result":null',
    '"id":1,"result":[1]',
    `"id":1,${ERROR}`,
    `"id":null,${ERROR}`,
    '"id":1,"error":{"code":1,"message":"","data":{"any":["thing"]}}',
  ])('needs only the permission of the route: %s', async (members) => {
    expect(await answer(message(members))).toBe('passed')
  })

  test.each([
    ['a method and a result', '"id":1,"method":"ping","result":{}', 'ambiguous'],
    ['a method and an error', `"id":1,"method":"ping",${ERROR}`, 'ambiguous'],
    ['an invalid method and a result', '"id":1,"method":null,"result":{}', 'ambiguous'],
    ['an unknown method and a result', '"id":1,"method":"drop","result":{}', 'ambiguous'],
    ['a result and an error', `"id":1,"result":{},${ERROR}`, 'ambiguous'],
    ['a result and a null error', '"id":1,"result":{},"error":null', 'ambiguous'],
    ['params', '"id":1,"result":{},"params":{}', 'member'],
    ['a method in another case', '"id":1,"result":{},"Method":"ping"', 'member'],
    ['a result in another case', '"id":1,"Result":{}', 'member'],
    ['another member', '"id":1,"result":{},"extra":1', 'member'],
    ['no id', '"result":{}', 'id'],
    ['a result with a null id', '"id":null,"result":{}', 'id'],
    ['a fractional id', '"id":1.5,"result":{}', 'id'],
    ['an id that is too long', `"id":"${'x'.repeat(257)}","result":{}`, 'id'],
    ['an error without an id', ERROR, 'id'],
    ['an error that is a string', '"id":1,"error":"declined"', 'error'],
    ['an error that is null', '"id":1,"error":null', 'error'],
    ['an error without a code', '"id":1,"error":{"message":"m"}', 'error'],
    ['an error with a fractional code', '"id":1,"error":{"code":1.5,"message":"m"}', 'error'],
    ['an error without a message', '"id":1,"error":{"code":1}', 'error'],
    ['an error with another member', '"id":1,"error":{"code":1,"message":"m","x":1}', 'error'],
    ['neither method nor result', '"id":1', 'method'],
  ])('is refused with %s', async (_, members, check) => {
    expect(await answer(message(members))).toBe(`400 json_rpc_${check}`)
  })

  test('is refused with a repeated name, or in another version', async () => {
    expect(await answer(message('"id":1,"result":{},"result":{}'))).toBe('400 body_duplicate_name')
    expect(await answer(message('"id":1,"result":{},"\\u0072esult":{}'))).toBe(
      '400 body_duplicate_name',
    )
    expect(await answer('{"jsonrpc":"1.0","id":1,"result":{}}')).toBe('400 json_rpc_version')
    expect(await answer('{"id":1,"result":{}}')).toBe('400 json_rpc_version')
  })
})

describe('a batch [S63]', () => {
  const ping = (id: number) => message(`"id":${id},"method":"ping"`)
  const result = (id: number) => message(`"id":${id},"result":{}`)

  test('may contain requests and responses with independent ids', async () => {
    expect(await answer(`[${ping(1)},${result(1)},${result(2)}]`)).toBe('passed')
    expect(await answer(`[${result(1)},${message(`"id":null,${ERROR}`)}]`)).toBe('passed')
  })

  test('is refused as a whole for one forbidden call or response', async () => {
    expect(await answer(`[${result(1)},${message('"id":2,"method":"drop"')}]`)).toBe(
      '403 call_refused',
    )
    expect(await answer(`[${ping(1)},${message('"id":2,"result":{},"method":"ping"')}]`)).toBe(
      '400 json_rpc_ambiguous',
    )
    expect(await answer(`[${result(1)},${result(1)}]`)).toBe('400 json_rpc_id')
  })

  test('counts responses towards its maximum', async () => {
    expect(await answer(`[${[1, 2, 3, 4, 5].map(result)}]`)).toBe('passed')
    expect(await answer(`[${[1, 2, 3, 4, 5, 6].map(result)}]`)).toBe('400 json_rpc_batch')
  })
})
