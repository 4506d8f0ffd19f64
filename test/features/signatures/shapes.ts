/**
 * JSON-RPC bodies combined from parts with known results, so that the result of each body is known
 * too.
 */

/** The status that a part, and with it a request, must get. 200 is valid. */
export type Worth = 200 | 400 | 403 | 422

type Part = readonly [text: string | undefined, worth: Worth]
type Draw = (below: number) => number

/** A member `"name":text`. Undefined omits it. */
const VERSIONS: readonly Part[] = [
  ['"2.0"', 200],
  ['"\\u0032.0"', 200],
  ['"2"', 400],
  ['2.0', 400],
  ['null', 400],
  [undefined, 400],
]
const IDS: readonly Part[] = [
  ['null', 400],
  ['1.5', 400],
  ['true', 400],
  ['[1]', 400],
  ['{}', 400],
  ['9007199254740993', 400],
  ['-1e400', 400],
  [`"${'x'.repeat(257)}"`, 400],
]
const METHODS: readonly Part[] = [
  ['"tools/list"', 200],
  ['"Tools/list"', 403],
  ['"tools/list "', 403],
  ['"toString"', 403],
  ['"tools"', 403],
  ['""', 403],
  ['"admin/reset"', 403],
  ['"logging/setLevel"', 403],
  ['["tools/list"]', 400],
  ['7', 400],
  [undefined, 400],
]
const PARAMS: readonly Part[] = [
  [undefined, 200],
  ['{}', 200],
  ['[1,"a"]', 200],
  ['{"cursor":"x"}', 200],
  ['null', 400],
  ['"x"', 400],
  ['1', 400],
]
/** Undefined members. */
const EXTRAS: readonly string[] = [
  '"Method":"tools/call"',
  '"result":1',
  '"error":{"code":1,"message":"m"}',
  '"__proto__":{"method":"x"}',
  '"method":"tools/call"',
  '"\\u006dethod":"tools/call"',
]
const FOREIGN: readonly string[] = ['"Method":"tools/call"', '"__proto__":{"method":"x"}']
/** `params` of a tool call. */
const TOOL_CALLS: readonly Part[] = [
  ['{"name":"search","arguments":{"text":"x"}}', 200],
  ['{"arguments":{"text":"constructor","limit":3},"name":"s\\u0065arch","_meta":{"a":[1]}}', 200],
  ['{"name":"list"}', 200],
  ['{"name":"list","arguments":{}}', 200],
  ['{"name":"list","arguments":{"all":true}}', 422],
  ['{"name":"search"}', 422],
  ['{"name":"search","arguments":{"text":""}}', 422],
  ['{"name":"search","arguments":{"text":["x"]}}', 422],
  ['{"name":"search","arguments":{"text":"x","as":"admin"}}', 422],
  ['{"name":"remove","arguments":{"id":1}}', 403],
  // A missing permission takes precedence over a schema error.
  ['{"name":"remove","arguments":{"wrong":1}}', 403],
  ['{"name":"Search","arguments":{"text":"x"}}', 403],
  ['{"name":"search ","arguments":{"text":"x"}}', 403],
  ['{"name":"constructor"}', 403],
  ['{"name":"hasOwnProperty"}', 403],
  ['{"name":"se\u200barch","arguments":{"text":"x"}}', 403],
  ['{"name":"search","Name":"remove","arguments":{"text":"x"}}', 400],
  ['{"name":"search","name":"remove","arguments":{"text":"x"}}', 400],
  ['{"name":"search","arguments":[]}', 400],
  ['{"name":"search","arguments":null}', 400],
  ['{"name":"search","arguments":{"__proto__":{"text":"x"}}}', 400],
  ['{"name":"search\\u0000","arguments":{"text":"x"}}', 400],
  ['{"name":["search"],"arguments":{"text":"x"}}', 400],
  ['{"arguments":{"text":"x"}}', 400],
  ['["search",{"text":"x"}]', 400],
  [undefined, 400],
]

export interface Shape {
  readonly text: string
  readonly worth: Worth
}

/** Creates a message with mostly valid parts and the given unique id. */
function messageOf(draw: Draw, id: number): Shape {
  const worths: Worth[] = []
  const members: string[] = []
  const rarely = () => draw(12) === 0
  const add = (name: string, [text, worth]: Part) => {
    if (text !== undefined) members.push(`"${name}":${text}`)
    worths.push(worth)
  }
  const one = (parts: readonly Part[]): Part => parts[draw(parts.length)] ?? [undefined, 400]

  add('jsonrpc', rarely() ? one(VERSIONS) : ['"2.0"', 200])
  if (draw(4) > 0) add('id', rarely() ? one(IDS) : [draw(2) > 0 ? `${id}` : `"${id}"`, 200])
  if (draw(3) > 0) {
    add('method', ['"tools/call"', 200])
    // A third of them uses one of the two parts that are accepted most often.
    add('params', (draw(3) > 0 ? TOOL_CALLS[draw(4)] : one(TOOL_CALLS)) ?? [undefined, 400])
  } else {
    add('method', draw(2) > 0 ? one(METHODS) : ['"tools/list"', 200])
    add('params', draw(2) > 0 ? one(PARAMS) : [undefined, 200])
  }
  // Without a method, a result or an error makes a response, which has its own tests.
  const extras = members.some((member) => member.startsWith('"method"')) ? EXTRAS : FOREIGN
  const extra = rarely() ? extras[draw(extras.length)] : undefined
  // `"method"` is a duplicate only beside a first one.
  if (extra !== undefined) add('', [undefined, 400])
  const shuffled = members.concat(extra ?? []).sort(() => draw(3) - 1)
  return { text: `{${shuffled.join(' ,\n')}}`, worth: worstOf(worths) }
}

/** Form errors take precedence over names, and names over schemas. */
function worstOf(worths: readonly Worth[]): Worth {
  return ([400, 403, 422] as const).find((worth) => worths.includes(worth)) ?? 200
}

/**
 * Creates a body: a message, or a batch of at most one more than `maxBatch`. A batch is malformed
 * if one of its messages is; otherwise its first invalid message decides.
 */
export function shapeOf(draw: Draw, maxBatch: number): Shape {
  if (draw(2) > 0) return messageOf(draw, 1)
  const messages = Array.from({ length: draw(maxBatch + 2) }, (_, at) => messageOf(draw, at))
  const worths = messages.map(({ worth }) => worth)
  const text = `[${messages.map((message) => message.text).join(',')}]`
  if (messages.length === 0 || messages.length > maxBatch || worths.includes(400))
    return { text, worth: 400 }
  return { text, worth: worths.find((worth) => worth !== 200) ?? 200 }
}
