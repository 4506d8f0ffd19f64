// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are texts of a shell
/** An attack is found whatever the length of the text between its parts. */
import { describe, expect, test } from 'vitest'
import { signatures } from '../../../src/features/signatures/index.ts'
import { inspected } from '../../inspection/app.ts'
import { signatureOf } from './signature-figures.ts'

const LENGTHS = [10, 100, 1_000] as const

/** Attacks with the place of the padding, `_`, and the units that leave the attack as it is. */
const PADDED: readonly (readonly [attack: string, ...units: string[]])[] = [
  // Command injection.
  ['127.0.0.1;_whoami', ' ', '\t', '\n', ' \n', ';', '; ', '|&', '(', '${IFS}'],
  ['127.0.0.1_;whoami', ' ', '\t', 'a', '.1', '/a', 'x'],
  ['x_$(id)', 'a', '/a', '1'],
  ['x_`id`', 'a', '&a', '1'],
  ['x;cat_/etc/passwd', ' ', '\t', ' \t'],
  ['x;ping _a.example', 'a', 'a-'],
  ['x;_/bin/id', '/', '/.', '/usr', ' '],
  ['x|sudo_whoami', ' ', '\t'],
  ['x;net_user', ' ', '\t'],
  ['x;cmd_/c dir', ' ', '\t'],
  ['() {_:;}; echo x', ' ', '\n'],
  ['_system("id")', ' ', '(', ';', '('],
  ['system_("id")', ' ', '\t'],
  // Cross-site scripting.
  ['x_" onfocus=alert(1) a="', ' ', 'a', 'a ', '\n'],
  ['x"_onfocus=alert(1)', ' ', '\t', '\n', '/', ' /'],
  ['x" a="b"_onfocus=alert(1)', ' ', '\n', '/'],
  ['x" onfocus_=alert(1)', ' ', '\t', '\n'],
  ['x" a onfocus=_alert(1)', ' ', '\t', '\n'],
  ['onfocus=_alert(1)', ' ', '\t'],
  ['x_";alert(1)//', ' ', 'a', 'a '],
  ['x"_;alert(1)//', ' ', ')', ']', '\n', '/**/', '/*a*/'],
  ['x";_alert(1)//', ' ', ';', '; ', '\n', '(', '!', '~', '/**/', '/*a*/'],
  ["x'-_alert(1)-'", ' ', '-', '+', '- '],
  ["x';alert_(1)//", ' ', '\t', '\n', '/**/'],
  ['<a href="java_script:alert(1)">', '\t', '\n'],
  ['<a href="javascript:_alert(1)">', ' ', '\t'],
  ['<a href="javascript:alert_(1)">', ' ', '/**/'],
  ['<svg _onload=alert(1)>', ' ', '/', '\n', 'a=b '],
  ['<meta http-equiv=refresh content="0_;url=javascript:alert(1)">', '0', ' '],
  ['{{_constructor.constructor("alert(1)")()}}', ' ', 'a '],
  // SQL injection.
  ["x' or_1=1 -- ", ' ', '\t', '\n', '/**/', '/*a*/', '(', '+', '~', '-+', ' not '],
  ["x'_or 1=1 -- ", ' ', '\n', ')', '/**/'],
  ["x' or 1=_1", ' ', '0', '\n'],
  ["x' or _1=1", '0'],
  ["x' or 'a_", 'a'],
  ["admin' -- _", ' ', '-', '- ', ')'],
  ["x'_union select a, b from c", ' ', ')', '/**/', '\n'],
  ["x' union_all select 1", ' ', '/**/', '\t'],
  ['_select sleep(5)', ' ', '(', ';', '+ '],
  ['select sleep_(5)', ' ', '/**/', '\t'],
  ["1;waitfor_delay '0:0:5'", ' ', '/**/', '\n'],
]

describe('an attack is found, whatever is its length [S63]:', () => {
  test.each(PADDED)('%j', (attack, ...units) => {
    expect(signatureOf(attack.replace('_', units[0] ?? '')), attack).toBeDefined()
    const missed = units.flatMap((unit) =>
      LENGTHS.filter((length) => {
        const padding = unit.repeat(length / unit.length)
        return signatureOf(attack.replace('_', () => padding)) === undefined
      }).map((length) => [unit, length]),
    )
    expect(missed).toEqual([])
  })
})

test('a padded attack never reaches the handler, encoded or not', async () => {
  const { send, reached } = inspected({ signatures: signatures({ mode: 'enforce' }) })
  for (const [attack, unit = ''] of PADDED) {
    const text = attack.replace('_', () => unit.repeat(100))
    expect((await send('', JSON.stringify({ text }), 'application/json')).status, text).toBe(403)
    const encoded = encodeURIComponent(encodeURIComponent(text))
    expect((await send(`?q=${encoded}`)).status, text).toBe(403)
  }
  expect(reached).toEqual([])
})

test('the same padding in harmless texts is not an attack', () => {
  const harmless = [
    'function a() {\n        return "b",\n            c\n    }',
    `| bash${' '.repeat(100)}| yes |`,
    `| node error${' '.repeat(9)}| emits${' '.repeat(100)}|`,
    `first line\n${' '.repeat(200)}second; line`,
    `a${';'.repeat(1_000)}b`,
    `<?php\n\n$curl = curl_init();\n${' '.repeat(100)}$sort = 1;`,
    `${'-'.repeat(80)}\nOr else: 1 or 2\n${'='.repeat(80)}`,
    `it's ${'a'.repeat(500)}; "date" and time`,
    'Accept: text/*, image/*;q=0.8, */*',
    `${'word '.repeat(200)}; whoami`,
  ]
  expect(harmless.filter((text) => signatureOf(text) !== undefined)).toEqual([])
})
