import {
  anyOf,
  bitsOf,
  DECISIVE,
  FAINT,
  NOTABLE,
  oneOf,
  type SignatureSet,
  wordsOf,
} from './signature-set.ts'

const SCORES = {
  script: DECISIVE,
  handler: DECISIVE,
  script_url: DECISIVE,
  active_element: NOTABLE,
  attribute_break_out: DECISIVE,
  script_break_out: DECISIVE,
  template: DECISIVE,
  sink: FAINT,
}
const BIT = bitsOf(SCORES)

/** No rule below matches a text without one of these. */
const SUSPICIOUS =
  /<[a-z/!?]|[-+;,*)}|&^]\s{0,2}\(?[a-z]|\bon[a-z]{3,30}\s{0,4}=|script|data|document|\{\{|(?:alert|eval|prompt|confirm)\)?\s{0,2}(?:[(`]|\?\.|\.\s{0,2}(?:call|apply))|\.innerhtml|fromcharcode/i
/** The name of an element. Some parsers accept `/` and control characters as its end. */
const ELEMENT = /[/\s]{0,4}([a-z][a-z0-9:-]{0,40})(?=$|[\s/>"'<=+(])/iy
/** One attribute of a tag with its value, and the separator before it. */
const ATTRIBUTE =
  /[\s/"'\u00a0+]*([^\s/>"'=<\u00a0+]+)(?:\s*=\s*(?:\\?"([^"]*)"?|\\?'([^']*)'?|`([^`]*)`?|([^\s>"'`]*)))?/y
const HANDLER_NAME = /^[^a-z]{0,2}on[a-z]{3,30}$/i
/** Attributes with a value that is fetched or run. */
const URL_ATTRIBUTES = wordsOf(
  'href src action formaction xlink:href data poster background from to values content lowsrc',
  'dynsrc code codebase srcset style folder',
)
const ACTIVE = wordsOf(
  'iframe object embed applet base frameset frame portal bgsound xss isindex layer ilayer xml',
  'animate set foreignobject handler',
)
const SCRIPTING = wordsOf('script svg:script x:script html:script')
/** Characters that browsers remove from a scheme. */
const GAP = String.raw`\s{0,9}`
const brokenUp = (scheme: string) => [...scheme].join(GAP)
/** A scheme, with or without gaps. Code must follow, because titles may start with the word too. */
const RUNS = anyOf(
  'i',
  `^[^a-z]{0,20}(?:${brokenUp('java')}|${brokenUp('vb')}|live)${GAP}${brokenUp('script:')}` +
    String.raw`\s{0,4}(?:[\w$.]{1,40}\s{0,2}[(=[\x60;]|[/({[!'"\x60\\+;~-]|%(?!20)|\w{1,20}$)`,
  `^[^a-z]{0,20}data:${oneOf(
    String.raw`text\/html text\/xml application\/xhtml image\/svg text\/javascript`,
    String.raw`application\/javascript ;base64 ,`,
  )}[^a-z]{0,4}[;,+]`,
)
const STYLE_RUNS =
  /expression\s{0,4}\(|-moz-binding|behaviou?r\s{0,4}:\s{0,4}url|@import|javascript:/i
/** A quote, and an event handler at the place of the next attribute. */
const QUOTE_THEN_HANDLER =
  /^[^"'<>]*["'`]{1,2}[\s/>]*(?:[\w-]{1,40}(?:=[^\s/]{0,100})?[\s/]+){0,4}on[a-z]{3,30}\s{0,4}=/i
/** An event handler alone, for an attribute without quotes. */
const BARE_HANDLER =
  /(?:^|[\s/"'`])on[a-z]{3,30}\s{0,4}=\s{0,4}["'`]?\s{0,4}(?:alert|prompt|confirm|eval|fetch|import|javascript:)\s{0,2}[(`\w]/i
/** A quote or the end of a statement, and a call that is typical of injected scripts. */
const QUOTE_THEN_CALL = anyOf(
  'i',
  String.raw`^[^"'\x60]*["'\x60](?=[\s)}\]]*[;+\-*,|&^<>?:/%=\n])[\s;+\-*,|&^<>?:/%=(){}![\]~]*` +
    oneOf(
      'alert prompt confirm eval fetch settimeout setinterval function import document window',
      'location self top parent globalthis this console xmlhttprequest print',
      String.raw`string\.fromcharcode new\s{1,2}function`,
    ) +
    String.raw`\s{0,2}(?:[.([\x60=]|\?\.)`,
)
/** A call that is spelled to avoid filters, at the start of a value; code also has the plain form. */
const DISGUISED_CALL = anyOf(
  'i',
  String.raw`^[\s;(!+~"'\x60]*(?:alert|prompt|confirm|eval)\)?\s{0,2}(?:\.\s{0,2}(?:call|apply)|\?\.)\s{0,2}\(`,
  String.raw`^[\s;!+~"'\x60]*\(\s{0,2}(?:alert|prompt|confirm|eval)\s{0,2}\)\s{0,2}[(\x60]`,
  String.raw`\beval\s{0,2}\(\s{0,2}(?:atob|unescape|string\.fromcharcode)\s{0,2}\(`,
  String.raw`^[\s;(!+~]*document\s{0,2}\[\s{0,2}["'\x60](?:cookie|domain|write)["'\x60]`,
)
const SCRIPT_END = /<\/script[\s/>]/i
const IN_TEMPLATE = anyOf(
  'i',
  String.raw`constructor(?:\.|\[['"]?|['"]\]\[?['"]?)\s{0,2}(?:constructor|prototype)`,
  String.raw`\{\{[^{}]{0,80}(?:constructor|\$eval|\$on\.|__proto__|alert\s{0,2}\()`,
  String.raw`\.constructor\s{0,2}\(\s{0,2}["'][^"']{0,80}["']\s{0,2}\)\s{0,2}\(`,
  String.raw`['"]constructor['"]\]\s{0,2}\(|\$\{\s{0,2}(?:alert|prompt|confirm|eval)\s{0,2}[(\x60]`,
)
const SINKS =
  /\bdocument\s{0,2}\.\s{0,2}(?:cookie|write|domain|location)|\b(?:alert|prompt|confirm)\s{0,2}[(`]|\bstring\s{0,2}\.\s{0,2}fromcharcode|\beval\s{0,2}\(|\.innerhtml\b/i

export const crossSiteScripting: SignatureSet = {
  category: 'cross_site_scripting',
  scores: SCORES,
  scan(text) {
    if (!SUSPICIOUS.test(text)) return 0
    let found = RUNS.test(text) ? BIT.script_url : 0
    if (QUOTE_THEN_HANDLER.test(text) || BARE_HANDLER.test(text)) found |= BIT.attribute_break_out
    if (QUOTE_THEN_CALL.test(text) || SCRIPT_END.test(text) || DISGUISED_CALL.test(text))
      found |= BIT.script_break_out
    if (IN_TEMPLATE.test(text)) found |= BIT.template
    if (SINKS.test(text)) found |= BIT.sink
    let at = text.indexOf('<')
    while (at !== -1) {
      const tag = tagAt(text, at + 1)
      found |= tag.found
      at = text.indexOf('<', tag.end)
    }
    return found
  },
}

interface Tag {
  readonly found: number
  /** The place after the text that was read, so that no text is read twice. */
  readonly end: number
}

/** Returns the rules that match the tag whose `<` is before `start`. */
function tagAt(text: string, start: number): Tag {
  ELEMENT.lastIndex = start
  const name = ELEMENT.exec(text)?.[1]?.toLowerCase()
  if (name === undefined) return { found: 0, end: start }
  let found = SCRIPTING.has(name) ? BIT.script : ACTIVE.has(name) ? BIT.active_element : 0
  let end = ELEMENT.lastIndex
  ATTRIBUTE.lastIndex = end
  let attribute = ATTRIBUTE.exec(text)
  while (attribute !== null) {
    end = ATTRIBUTE.lastIndex
    const [, key = '', ...values] = attribute
    const value = values.find((each) => each !== undefined)
    if (value !== undefined) found |= attributeFound(key.toLowerCase(), value)
    attribute = ATTRIBUTE.exec(text)
  }
  return { found, end }
}

function attributeFound(name: string, value: string): number {
  if (HANDLER_NAME.test(name)) return BIT.handler
  if (name === 'srcdoc') return BIT.script
  if (name === 'style') return STYLE_RUNS.test(value) ? BIT.script_url : 0
  if (!URL_ATTRIBUTES.has(name)) return 0
  const target = name === 'content' ? value.replace(/^[\s\d.,;]*url=/i, '') : value
  return RUNS.test(target) ? BIT.script_url : 0
}
