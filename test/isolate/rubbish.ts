/** Malformed replies of a Redis endpoint, as faults of the proxy. */
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

/** Each of them is an outage: none contains information about a caller. */
export const RUBBISH: readonly (readonly [name: string, fault: LastingFault])[] = [
  ['an empty body', saying('')],
  ['a page of HTML', saying('<html>welcome</html>', { 'content-type': 'text/html' })],
  ['half of a JSON text', saying('[{"result":[null,null')],
  ['an empty list', saying('[]')],
  ['a list that is too short', saying(`[${NOTHING}]`)],
  ['null', saying('null')],
  ['results that are null', saying('[{"result":null},{"result":null},{"result":null}]')],
  ['results that are objects', saying('[{"result":{}},{"result":{}},{"result":{}}]')],
  [
    'numbers instead of strings',
    saying('[{"result":[1,2,3,4,5,6,7,8]},{"result":0},{"result":[1,2]}]'),
  ],
  ['strings instead of numbers', saying(`[${NOTHING},{"result":"0"},{"result":["9","9"]}]`)],
  ['lists in lists', saying('[{"result":[[[null]]]},{"result":[[0]]},{"result":[[[2]]]}]')],
  ['replies to other commands', saying('[{"result":"PONG"},{"result":"OK"},{"result":"OK"}]')],
  ['a list of plain nulls', saying('[null,null,null]')],
  [
    'an error together with a result',
    saying(`[${NOTHING},{"result":0,"error":"ERR"},{"result":1}]`),
  ],
  [
    'compressed bytes that are not gzip',
    saying('\u001f\u008bnothing of the kind', { 'content-encoding': 'gzip' }),
  ],
  [
    'a compressed page',
    {
      kind: 'answer',
      status: 200,
      headers: { ...JSON_TYPE, 'content-encoding': 'gzip' },
      bodyBase64: gzipSync('<html>welcome</html>').toString('base64'),
    },
  ],
  ['more bytes announced than sent', { ...saying('[', { 'content-length': '999' }), close: true }],
  ['fewer bytes announced than sent', saying(`[${NOTHING},{}]`, { 'content-length': '2' })],
  ['a bad chunk', saying('zz\r\n[]\r\n', { 'transfer-encoding': 'chunked' })],
  ['bytes that are not UTF-8', { kind: 'answer', status: 200, bodyBase64: 'W//+XQ==' }],
  ['a redirect', { kind: 'answer', status: 302, headers: { location: 'http://127.0.0.1:1/' } }],
  ['no content', { kind: 'answer', status: 204 }],
  ['a refusal of the plan', { kind: 'answer', status: 429, body: '{"error":"ERR max requests"}' }],
  ['an error page', { kind: 'answer', status: 503, body: '<html>oops</html>' }],
] as readonly (readonly [string, LastingFault])[]

/** Faults below HTTP, and delays. */
export const FAULTS: readonly (readonly [name: string, fault: LastingFault])[] = [
  ['no connection', { kind: 'refuse' }],
  ['silence', { kind: 'hang' }],
  ['random bytes', { kind: 'garbage' }],
  ['a reset before the answer', { kind: 'reset', afterBytes: 0 }],
  ['a reset within the answer', { kind: 'reset', afterBytes: 120 }],
  ['a truncated answer', { kind: 'truncate', afterBytes: 120 }],
  ['a very slow answer', { kind: 'throttle', bytesPerSecond: 40 }],
  ['an answer after 50 ms and more', { kind: 'latency', ms: 50, jitterMs: 50 }],
  ['an answer after 200 ms and more', { kind: 'latency', ms: 200, jitterMs: 100 }],
  ['an answer after a second', { kind: 'latency', ms: 1_000, jitterMs: 500 }],
]
