/** What a text becomes where somebody behind the gateway decodes it once more. */

/** Escapes of URLs, HTML (by number, and by the names that hide schemes) and of JavaScript. */
const ESCAPE =
  /%([0-7][0-9a-f])|%u00([0-7][0-9a-f])|&#x0{0,6}([0-7]?[0-9a-f])(?:;|(?![0-9a-f]))|&#0{0,6}(\d{1,3})(?:;|(?!\d))|&(colon|tab|newline|lpar|rpar|quot|apos|sol|bsol);|\\(?:x|u00|u\{)([0-7][0-9a-f])\}?/gi
const NAMED: Readonly<Record<string, string>> = {
  ...{ colon: ':', tab: '\t', newline: '\n', lpar: '(', rpar: ')' },
  ...{ quot: '"', apos: "'", sol: '/', bsol: '\\' },
}
/** From here on nothing means anything to a parser. */
const FIRST_BEYOND_ASCII = 0x80
const LESS_THAN = 0x3c
/** All of them begin with one of these. */
const ESCAPING = /[%&\\]/

/**
 * The text with its escapes read, or undefined where that changes nothing. Only ASCII is decoded,
 * for only that is in a signature. An entity of HTML is never read as `<`: written so it is text,
 * and remains text.
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
