/** Decodes a text once more, as a server behind the gateway may do. */

/** Escapes of URLs, HTML (numeric, and the names that can hide a scheme) and JavaScript. */
const ESCAPE =
  /%([0-7][0-9a-f])|%u00([0-7][0-9a-f])|&#x0{0,6}([0-7]?[0-9a-f])(?:;|(?![0-9a-f]))|&#0{0,6}(\d{1,3})(?:;|(?!\d))|&(colon|tab|newline|lpar|rpar|quot|apos|sol|bsol);|\\(?:x|u00|u\{)([0-7][0-9a-f])\}?/gi
const NAMED: Readonly<Record<string, string>> = {
  ...{ colon: ':', tab: '\t', newline: '\n', lpar: '(', rpar: ')' },
  ...{ quot: '"', apos: "'", sol: '/', bsol: '\\' },
}
/** Characters from here on have no meaning to a parser. */
const FIRST_BEYOND_ASCII = 0x80
const LESS_THAN = 0x3c
/** Every escape starts with one of these. */
const ESCAPING = /[%&\\]/

/**
 * Returns the text with its escapes decoded; undefined if decoding changes nothing. Decodes only
 * ASCII, because signatures contain only ASCII. Never decodes an HTML entity to `<`: an entity is
 * text and does not start a tag.
 */
export function decodedOnce(text: string): string | undefined {
  if (!ESCAPING.test(text)) return undefined
  const decoded = text.replace(ESCAPE, (written, ...groups: (string | undefined)[]) => {
    const [url, wideUrl, hexEntity, entity, name, script] = groups
    if (name !== undefined) return NAMED[name.toLowerCase()] ?? written
    const hex = url ?? wideUrl ?? hexEntity ?? script
    const code = hex === undefined ? Number(entity) : Number.parseInt(hex, 16)
    const isEntity = hexEntity !== undefined || entity !== undefined
    if (code >= FIRST_BEYOND_ASCII || (isEntity && code === LESS_THAN)) return written
    return String.fromCharCode(code)
  })
  return decoded === text ? undefined : decoded
}
