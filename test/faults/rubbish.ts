/** What a Redis endpoint that has lost its mind may answer, as faults of the proxy. */
import { gzipSync } from 'node:zlib'
import type { LastingFault } from '../../dev/fault-proxy/fault.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
const NOTHING = '{"result":[null,null,null,null,null,null,null,null,null,null]}'

const saying = (body: string, headers: Record<string, string> = {}): LastingFault => ({
  kind: 'answer',
  status: 200,
  headers: { ...JSON_TYPE, ...headers },
  body,
})

/** Each of them is an outage: nothing in it says anything about anybody. */
export const RUBBISH: readonly (readonly [name: string, fault: LastingFault])[] = [
  ['an empty body', saying('')],
  ['a page of HTML', saying('<html>welcome</html>', { 'content-type': 'text/html' })],
  ['half of a JSON text', saying('[{"result":[null,null')],
  ['an empty list', saying('[]')],
  ['a list that is too short', saying(`[${NOTHING}]`)],
  ['null', saying('null')],
  ['results that are null', saying('[{"result":null},{"result":null},{"result":null}]')],
  ['results that are objects', saying('[{"result":{}},{"result":{}},{"result":{}}]')],
  ['numbers for texts', saying('[{"result":[1,2,3,4,5,6,7,8]},{"result":0},{"result":[1,2]}]')],
  ['texts for numbers', saying(`[${NOTHING},{"result":"0"},{"result":["9","9"]}]`)],
  ['lists in lists', saying('[{"result":[[[null]]]},{"result":[[0]]},{"result":[[[2]]]}]')],
  ['answers to other commands', saying('[{"result":"PONG"},{"result":"OK"},{"result":"OK"}]')],
  ['a list of bare nulls', saying('[null,null,null]')],
  ['an error and a result at once', saying(`[${NOTHING},{"result":0,"error":"ERR"},{"result":1}]`)],
  [
    'packed octets that are no gzip',
    saying('\u001f\u008bnothing of the kind', { 'content-encoding': 'gzip' }),
  ],
  [
    'a packed page',
    {
      ...{ kind: 'answer', status: 200, headers: { ...JSON_TYPE, 'content-encoding': 'gzip' } },
      bodyBase64: gzipSync('<html>welcome</html>').toString('base64'),
    },
  ],
  ['more octets announced than sent', { ...saying('[', { 'content-length': '999' }), close: true }],
  ['fewer octets announced than sent', saying(`[${NOTHING},{}]`, { 'content-length': '2' })],
  ['a bad chunk', saying('zz\r\n[]\r\n', { 'transfer-encoding': 'chunked' })],
  ['octets that are no UTF-8', { kind: 'answer', status: 200, bodyBase64: 'W//+XQ==' }],
  ['a redirect', { kind: 'answer', status: 302, headers: { location: 'http://127.0.0.1:1/' } }],
  ['no content', { kind: 'answer', status: 204 }],
  ['a refusal of the plan', { kind: 'answer', status: 429, body: '{"error":"ERR max requests"}' }],
  ['an error page', { kind: 'answer', status: 503, body: '<html>oops</html>' }],
] as readonly (readonly [string, LastingFault])[]

/** Faults below HTTP, and those of time. */
export const FAULTS: readonly (readonly [name: string, fault: LastingFault])[] = [
  ['no connection', { kind: 'refuse' }],
  ['silence', { kind: 'hang' }],
  ['random octets', { kind: 'garbage' }],
  ['a reset before the answer', { kind: 'reset', afterBytes: 0 }],
  ['a reset in the answer', { kind: 'reset', afterBytes: 120 }],
  ['an answer that is cut off', { kind: 'truncate', afterBytes: 120 }],
  ['an answer that drips', { kind: 'throttle', bytesPerSecond: 40 }],
  ['an answer after 50 ms and more', { kind: 'latency', ms: 50, jitterMs: 50 }],
  ['an answer after 200 ms and more', { kind: 'latency', ms: 200, jitterMs: 100 }],
  ['an answer after a second', { kind: 'latency', ms: 1_000, jitterMs: 500 }],
]
