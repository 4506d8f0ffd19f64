/** Gives the local variables of a Lua script short names. Scripts are in every bundle, and sent to each Redis. */

/** A string, a number, a name, `..` and `...`, or another character. */
const TOKEN = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|\d[\w.]*|[A-Za-z_]\w*|\.{2,3}|==|\S/g
const NAME = /^[A-Za-z_]/
const KEYWORDS = new Set(
  'and break do else elseif end false for function if in local nil not or repeat return then true until while'.split(
    ' ',
  ),
)
const OPENS_BLOCK = new Set(['function', 'if', 'do', 'repeat'])
const CLOSES_BLOCK = new Set(['end', 'until'])
const SEPARATES_FIELDS = new Set(['{', ',', ';'])
/** Of variables that no other file uses. Shared variables have names with capitals. */
const LETTERS = [...'abcdefghijklmnopqrstuvwxyz']
const SHORT = [...LETTERS, ...LETTERS.flatMap((one) => LETTERS.map((other) => one + other))]
const SHARED = LETTERS.map((letter) => letter.toUpperCase())

interface Token {
  readonly text: string
  /** Whether it is the name of a variable, and not that of a field. */
  readonly isVariable: boolean
}

/** The names of local variables that a script declares. */
export interface Declared {
  /** In its outermost block: scripts that include it can use them. */
  readonly outer: ReadonlySet<string>
  /** In other blocks, in loops, and as parameters. */
  readonly inner: ReadonlySet<string>
}

/** Returns short names for the variables that files share, the shortest for those that are used most. */
export function shortShared(
  files: readonly string[],
  names: ReadonlySet<string>,
): ReadonlyMap<string, string> {
  const uses = new Map([...names].map((name) => [name, 0]))
  for (const { text, isVariable } of files.flatMap(tokensOf)) {
    const count = uses.get(text)
    if (isVariable && count !== undefined) uses.set(text, count + 1)
  }
  const short = [...SHARED, ...SHARED.flatMap((one) => LETTERS.map((other) => one + other))]
  const byUse = [...uses].sort(([, one], [, other]) => other - one)
  return new Map(byUse.map(([name], at) => [name, short[at] ?? name]))
}

/**
 * Replaces the names of local variables everywhere: those of `shared` by theirs, and all others except `kept`, the
 * names that the script has from another place. Two variables get the same name only if they had the same one.
 * `lua` has no comments.
 */
export function shortenNames(
  lua: string,
  kept: ReadonlySet<string>,
  shared: ReadonlyMap<string, string> = new Map(),
): string {
  const tokens = tokensOf(lua)
  const { outer, inner } = declaredIn(lua)
  const uses = new Map<string, number>()
  const others = new Set<string>(KEYWORDS)
  for (const { text, isVariable } of tokens) {
    const isLocal =
      isVariable && (outer.has(text) || inner.has(text)) && !kept.has(text) && !shared.has(text)
    if (isLocal) uses.set(text, (uses.get(text) ?? 0) + 1)
    else others.add(text)
  }
  const byUse = [...uses].sort(([, one], [, other]) => other - one).map(([name]) => name)
  const free = SHORT.filter((name) => !others.has(name))
  const short = new Map(byUse.slice(0, free.length).map((name, at) => [name, free[at] ?? name]))
  let at = 0
  return lua.replaceAll(TOKEN, (text) =>
    tokens[at++]?.isVariable ? (shared.get(text) ?? short.get(text) ?? text) : text,
  )
}

/** Returns the names of the local variables that a script declares. */
export function declaredIn(lua: string): Declared {
  const tokens = tokensOf(lua).map(({ text }) => text)
  const outer = new Set<string>()
  const inner = new Set<string>()
  let depth = 0
  for (const [at, token] of tokens.entries()) {
    if (token === 'local') {
      const isFunction = tokens[at + 1] === 'function'
      const names = listFrom(tokens, at + (isFunction ? 2 : 1))
      for (const name of isFunction ? names.slice(0, 1) : names)
        (depth === 0 ? outer : inner).add(name)
    }
    if (token === 'for') for (const name of listFrom(tokens, at + 1)) inner.add(name)
    if (token === 'function')
      for (const name of listFrom(tokens, tokens.indexOf('(', at) + 1)) inner.add(name)
    if (OPENS_BLOCK.has(token)) depth += 1
    if (CLOSES_BLOCK.has(token)) depth -= 1
  }
  return { outer, inner }
}

/** Returns the names from a place on, with commas between them. */
function listFrom(tokens: readonly string[], from: number): readonly string[] {
  const names: string[] = []
  for (let at = from; ; at += 2) {
    const name = tokens[at] ?? ''
    if (!NAME.test(name) || KEYWORDS.has(name)) return names
    names.push(name)
    if (tokens[at + 1] !== ',') return names
  }
}

function tokensOf(lua: string): readonly Token[] {
  const texts = lua.match(TOKEN) ?? []
  /** The blocks and tables around a token. */
  const around: string[] = []
  return texts.map((text, at) => {
    const [before = '', after = ''] = [texts[at - 1], texts[at + 1]]
    const isKey = around.at(-1) === '{' && SEPARATES_FIELDS.has(before) && after === '='
    const isField = isKey || before === '.' || before === ':'
    if (text === '{' || OPENS_BLOCK.has(text)) around.push(text)
    if (text === '}' || CLOSES_BLOCK.has(text)) around.pop()
    return { text, isVariable: NAME.test(text) && !KEYWORDS.has(text) && !isField }
  })
}
