/** Other spellings of a path that some server treats as the same path. */

const encode = (text: string) => encodeURIComponent(text)
const fullWidth = (text: string) =>
  encode(text.replace(/[!-~]/g, (c) => String.fromCharCode(c.charCodeAt(0) + 0xfee0)))
const bold = (text: string) =>
  encode(text.replace(/[a-z]/g, (c) => String.fromCodePoint(0x1d400 + 26 + c.charCodeAt(0) - 97)))
/** Replaces the first of some letters by a look-alike. */
const foreign = (text: string) => {
  const pairs = { a: '\u0430', e: '\u0435', o: '\u043e', s: '\u017f', i: '\u0131', k: '\u212a' }
  const [letter = ''] = /[aeosik]/.exec(text) ?? []
  return encode(text.replace(letter, pairs[letter as keyof typeof pairs] ?? ''))
}

/** Spellings of one name that add nothing to the path. */
export const OF_A_NAME: Readonly<Record<string, (name: string) => string>> = {
  'upper case': (name) => name.toUpperCase(),
  'a capital': (name) => name.slice(0, 1).toUpperCase() + name.slice(1),
  'a last capital': (name) => name.slice(0, -1) + name.slice(-1).toUpperCase(),
  'a dot': (name) => `${name}.`,
  'two dots': (name) => `${name}..`,
  'a space': (name) => `${name}%20`,
  'a space and a dot': (name) => `${name}%20.`,
  'a space before it': (name) => `%20${name}`,
  'a no-break space': (name) => `${name}%C2%A0`,
  'a plus sign': (name) => `${name}+`,
  'a zero-width space': (name) => `${name.slice(0, 1)}%E2%80%8B${name.slice(1)}`,
  'a soft hyphen': (name) => `${name}%C2%AD`,
  'a combining accent': (name) => `${name.slice(0, 1)}%CC%81${name.slice(1)}`,
  'full-width letters': fullWidth,
  'mathematical letters': bold,
  'a look-alike letter': foreign,
  'an encoded letter': (name) => `%${name.charCodeAt(0).toString(16)}${name.slice(1)}`,
  'a twice encoded letter': (name) => `%25${name.charCodeAt(0).toString(16)}${name.slice(1)}`,
  'a stream': (name) => `${name}::$DATA`,
  'a folder’s stream': (name) => `${name}:$i30:$INDEX_ALLOCATION`,
  'a short name': (name) => `${name.slice(0, 6)}~1`,
  'a path parameter': (name) => `${name};x=1`,
  'a session of ASP.NET': (name) => `(S(x))/${name}`,
  'a session of ASP.NET inside': (name) => `${name.slice(0, 2)}/(S(x))${name.slice(2)}`,
  'a blank segment before it': (name) => `%20/${name}`,
  'a dot segment before it': (name) => `%2e/${name}`,
  'a slash before it': (name) => `/${name}`,
}

/** Spellings that apply only to a last name. */
export const OF_A_LAST_NAME: Readonly<Record<string, (name: string) => string>> = {
  'a slash': (name) => `${name}/`,
  'a slash and a capital': (name) => `${name.slice(0, 1).toUpperCase()}${name.slice(1)}/`,
  'a blank segment': (name) => `${name}/%20`,
  'a segment of a plus sign': (name) => `${name}/+`,
  'a segment of a dot and a space': (name) => `${name}/.%20`,
  'an extension': (name) => `${name}.json`,
  'a numeric extension': (name) => `${name}.1`,
  'a capital and an extension': (name) => `${name.slice(0, 1).toUpperCase()}${name.slice(1)}.xml`,
  'a script': (name) => `${name}.php`,
  'an argument of a script': (name) => `${name}.php/x.css`,
  'a default document': (name) => `${name}/index.html`,
  'a default action': (name) => `${name}/Index`,
  'a default page': (name) => `${name}/Default.aspx`,
}

export interface Spelling {
  readonly kind: string
  readonly path: string
}

/** Returns each other spelling of one name of a path, given as `/api/{admin}`. */
export function spellingsOf(marked: string): Spelling[] {
  const [before = '', name = '', after = ''] = marked.split(/[{}]/)
  const kinds = after === '' ? { ...OF_A_NAME, ...OF_A_LAST_NAME } : OF_A_NAME
  return Object.entries(kinds).map(([kind, respell]) => ({
    kind,
    path: before + respell(name) + after,
  }))
}
