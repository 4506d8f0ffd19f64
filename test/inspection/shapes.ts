/**
 * Bodies of JSON-RPC, put together of parts whose worth is known: what becomes of each is known,
 * too.
 */

/** How a part, and with it a request, is to be answered; 200 is sound. */
export type Worth = 200 | 400 | 403 | 422

type Part = readonly [text: string | undefined, worth: Worth]
type Draw = (below: number) => number

/** A member `"name":text`; undefined leaves it out. */
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
/** Members that nobody asked for. */
const EXTRAS: readonly string[] = [
  '"Method":"tools/call"',
  '"result":1',
  '"error":{"code":1,"message":"m"}',
  '"__proto__":{"method":"x"}',
  '"method":"tools/call"',
  '"\\u006dethod":"tools/call"',
]
const FOREIGN: readonly string[] = ['"Method":"tools/call"', '"__proto__":{"method":"x"}']
/** `params` of a call of a tool. */
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
  // Not permitted comes before not matching.
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

/** A message, most of its parts sound; `id` is one that no other message has. */
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
    // A third of them is one of the two that pass most easily.
    add('params', (draw(3) > 0 ? TOOL_CALLS[draw(4)] : one(TOOL_CALLS)) ?? [undefined, 400])
  } else {
    add('method', draw(2) > 0 ? one(METHODS) : ['"tools/list"', 200])
    add('params', draw(2) > 0 ? one(PARAMS) : [undefined, 200])
  }
  // Without a method, a result or an error makes a response, which has tests of its own.
  const extras = members.some((member) => member.startsWith('"method"')) ? EXTRAS : FOREIGN
  const extra = rarely() ? extras[draw(extras.length)] : undefined
  // `"method"` is a second one only beside a first.
  if (extra !== undefined) add('', [undefined, 400])
  const shuffled = members.concat(extra ?? []).sort(() => draw(3) - 1)
  return { text: `{${shuffled.join(' ,\n')}}`, worth: worstOf(worths) }
}

/** Form is looked at before names, names before schemas. */
function worstOf(worths: readonly Worth[]): Worth {
  return ([400, 403, 422] as const).find((worth) => worths.includes(worth)) ?? 200
}

/**
 * A body: a message, or a batch of up to one more than `maxBatch`. A batch is malformed as a whole
 * where one of its messages is; else its first message that is not sound decides.
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
