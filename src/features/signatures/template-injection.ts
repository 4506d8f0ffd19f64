/** Expressions that template engines and loggers of servers evaluate. */
import { anyOf, bitsOf, DECISIVE, oneOf, type SignatureSet } from './signature-set.ts'

const SCORES = { expression: DECISIVE }
const BIT = bitsOf(SCORES)

/** The rule below matches no text without one of these. */
const SUSPICIOUS = /[$#*@%{]\{|\{%|\{=|<%|<#|\bT\s{0,4}\(|freemarker|java\.lang/i
/** The start of an expression in the engines in use. */
const OPENING = /[$#*@%]\{|\{\{|\{=|\{%|<%|<#/
/** Characters before a word that are searched for the start of its expression. */
const MAX_EXPRESSION_CHARS = 200
/** Words that are suspicious within an expression. Stack traces and code have them too. */
const WORD = new RegExp(
  oneOf(
    // Python: attributes of objects that lead to every class.
    '__(?:class|mro|bases?|subclasses|globals|builtins|import|init|dict|getattribute)__',
    String.raw`\|\s{0,4}attr\s{0,4}\(`,
    // Java: Freemarker, Velocity, Thymeleaf, SpEL and OGNL.
    String.raw`java\.lang\. getruntime\b getclass\s{0,4}\( forname\s{0,4}\( processbuilder`,
    String.raw`#_memberaccess @java\. \?new\s{0,4}\(`,
    // JavaScript.
    String.raw`process\.(?:mainmodule|binding) global\.process child_process`,
    String.raw`require\s{0,4}\(\s{0,4}["'](?:fs|os|net)["']`,
  ),
  'gi',
)
const EXPRESSION = anyOf(
  'i',
  // A product, with which tools find out that an expression is evaluated.
  String.raw`(?:[$#*@%]\{|\{\{\{?=?|\{=|<%=)\s{0,9}["']?\d{1,12}["']?\s{0,9}[*+%]\s{0,9}["']?\d{1,12}["']?` +
    String.raw`\s{0,9}(?:\}|%>)`,
  // Objects of Python's engines.
  String.raw`\{\{\s{0,9}(?:self|_self|config|request|lipsum|cycler|joiner|namespace|url_for)\.` +
    oneOf(
      String.raw`_\w environ\b application\b items\s{0,4}\( from_object\b env\b getEnvironment\b`,
    ),
  // Java, and the look-ups of Log4j.
  String.raw`\bT\s{0,4}\(\s{0,4}java\.|freemarker\.template\.utility|%\{\s{0,9}\(?#\w`,
  String.raw`\$\{\s{0,9}(?:jndi:|\$\{[^{}]{0,40}:)`,
  String.raw`\$\{[^{}]{0,40}\$\{(?:::-|lower:|upper:|env:|sys:|java:|base64:|date:)`,
  // Ruby and PHP.
  String.raw`(?:[$#*@%]\{|\{\{|\{=|\{%|<%)\s{0,9}=?\s{0,9}(?:system|exec|passthru|popen|shell_exec|eval|phpinfo` +
    String.raw`|%x|file\.(?:read|open)|io\.popen|dir\.entries)\s{0,4}[(\x60"'{]`,
  String.raw`(?:<%=?|#\{)\s{0,9}\x60\s{0,4}\w`,
  String.raw`\|\s{0,4}(?:filter|map|sort|reduce)\s{0,4}\(\s{0,4}["'](?:system|exec|passthru|popen|shell_exec)\b`,
)

export const templateInjection: SignatureSet = {
  category: 'template_injection',
  scores: SCORES,
  scan(text) {
    if (!SUSPICIOUS.test(text)) return 0
    return EXPRESSION.test(text) || hasWordInExpression(text) ? BIT.expression : 0
  },
}

function hasWordInExpression(text: string): boolean {
  if (!OPENING.test(text)) return false
  for (const { index } of text.matchAll(WORD)) {
    const before = text.slice(Math.max(0, index - MAX_EXPRESSION_CHARS), index)
    if (OPENING.test(before.slice(before.lastIndexOf('}') + 1))) return true
  }
  return false
}
