/** Writes TypeScript expressions in lines of at most 100 columns. */

/** Text, or a call, object or list whose items can each have a line. */
export type Code = string | Group

interface Group {
  readonly open: string
  readonly items: readonly Code[]
  readonly close: string
  /** A space inside the brackets of one line. */
  readonly pad: string
}

const COLUMNS = 100
const INDENT = '  '
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/
/** Lone surrogates and characters that end a line in some editors. */
const UNSAFE = /[\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]/g

export const call = (name: string, ...items: readonly Code[]): Code => ({
  open: `${name}(`,
  items,
  close: ')',
  pad: '',
})

export const list = (items: readonly Code[]): Code => ({ open: '[', items, close: ']', pad: '' })

/** A member is written as `name: value`. */
export function object(members: readonly (readonly [name: string, value: Code])[]): Code {
  if (members.length === 0) return '{}'
  const items = members.map(([name, value]) => prefixed(`${key(name)}: `, value))
  return { open: '{', items, close: '}', pad: ' ' }
}

export function prefixed(prefix: string, code: Code): Code {
  if (typeof code === 'string') return prefix + code
  const [first, ...others] = code.items
  if (code.pad === 'chain' && first !== undefined)
    return { ...code, items: [prefixed(prefix, first), ...others] }
  return { ...code, open: prefix + code.open }
}

/** Appends `.check(...)`. */
export function checked(code: Code, checks: readonly Code[]): Code {
  if (checks.length === 0) return code
  const end: Group = { open: '.check(', items: checks, close: ')', pad: '' }
  if (typeof code === 'string') return { ...end, open: code + end.open }
  return { open: '', items: [code, end], close: '', pad: 'chain' }
}

/** A literal of a JSON value. */
export function literal(value: unknown): Code {
  if (typeof value === 'string') return quoted(value)
  if (Array.isArray(value)) return list(value.map(literal))
  if (typeof value === 'object' && value !== null)
    return object(Object.entries(value).map(([name, member]) => [name, literal(member)]))
  return JSON.stringify(value) ?? 'undefined'
}

export function quoted(text: string): string {
  const escaped = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"')
  return `'${escaped.replaceAll("'", "\\'").replace(UNSAFE, escapeOf)}'`
}

const escapeOf = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`

/** `['__proto__']: 1` is a member, `__proto__: 1` is not. */
const key = (name: string): string =>
  name === '__proto__' ? `['__proto__']` : IDENTIFIER.test(name) ? name : quoted(name)

/** Returns the code with its lines indented by `depth`. `column` is where its first line begins. */
export function written(code: Code, depth = 0, column = depth * INDENT.length): string {
  if (typeof code === 'string') return code
  const flat = flatten(code, COLUMNS - column)
  if (flat !== undefined) return flat
  if (code.pad === 'chain') {
    const parts: string[] = []
    for (const part of code.items) {
      const last = parts.join('').split('\n').at(-1) ?? ''
      parts.push(written(part, depth, parts.length === 0 ? column : last.length))
    }
    return parts.join('')
  }
  const [only] = code.items
  // `z.optional(z.looseObject({` on one line.
  if (code.items.length === 1 && only !== undefined && typeof only !== 'string' && code.pad === '')
    return code.open + written(only, depth, column + code.open.length) + code.close
  const inner = INDENT.repeat(depth + 1)
  const lines = code.items.map((item) => `${inner}${written(item, depth + 1)},`)
  return `${code.open}\n${lines.join('\n')}\n${INDENT.repeat(depth)}${code.close}`
}

/** Returns the code on one line, or undefined if it is longer than `room`. */
function flatten(code: Code, room: number): string | undefined {
  if (typeof code === 'string') return code.length <= room ? code : undefined
  let text = code.open
  for (const [index, item] of code.items.entries()) {
    const separator = index === 0 ? code.pad.replace('chain', '') : code.pad === 'chain' ? '' : ', '
    const part = flatten(item, room - text.length - separator.length)
    if (part === undefined) return undefined
    text += separator + part
  }
  text += code.pad.replace('chain', '') + code.close
  return text.length <= room ? text : undefined
}
