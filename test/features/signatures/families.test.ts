// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are texts of templates
/** Harmless texts that resemble injections into document databases, directories and templates. */
import { describe, expect, test } from 'vitest'
import { signatures } from '../../../src/features/signatures/index.ts'
import { inspected } from '../../inspection/app.ts'
import { signatureOf } from './signature-figures.ts'

describe('a harmless text that resembles an injection is accepted [S63]:', () => {
  test.each([
    // Prices, variables and members of other formats.
    'it costs $5; return it within 30 days',
    '$ref',
    '$schema',
    '{"$ref": "#/components/schemas/Order"}',
    '$gt is an operator of MongoDB',
    'the user said "no"; if (and only if) so',
    "It's late; return tomorrow",
    'use strict; var x',
    // Filters of directories, formulas and lists.
    '(&(objectClass=user)(mail=*@example.com))',
    '(|(cn=anna)(cn=bert))',
    'f(x)(y)=z',
    'group A) (n=20), group B) (n=25)',
    'if (!(a=b)) and (c)',
    // Templates without expressions.
    'Dear {{name}}, your order {{order.id}} is on its way',
    '{% for item in items %}{{ item.title }}{% endfor %}',
    '${HOME}/bin and ${env:PATH}',
    'at java.lang.Thread.run(Thread.java:840)',
    'the method __init__ of the class',
    'T (time) is 5 * 7',
    '{{1/2}} cup, {{2024-05-01}}',
    '<%= user.name %>',
    '#{user.name}',
    // Base64 of text, of an image and of a token.
    Buffer.from('The quick brown fox jumps over the lazy dog.').toString('base64'),
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 1]).toString('base64'),
    Buffer.from('{"alg":"RS256","typ":"JWT"}').toString('base64url'),
    'internationalization',
    'f47ac10b-58cc-4372-a567-0e02b2c3d479',
  ])('%s', (text) => {
    expect(signatureOf(text)).toBeUndefined()
  })
})

describe('an injection in a name never reaches the handler [S63]:', () => {
  test.each([
    ['?user[$ne]=x', undefined, undefined],
    ['?filter[password][$regex]=.*', undefined, undefined],
    ['', '{"user":"admin","password":{"$ne":null}}', 'application/json'],
    ['', 'user=admin&password[$gt]=', 'application/x-www-form-urlencoded'],
  ])('%s %s', async (query, body, type) => {
    const { send, reached, reasons } = inspected({ signatures: signatures({ mode: 'enforce' }) })
    expect((await send(query, body, type)).status).toBe(403)
    expect(reasons).toEqual(['nosql_injection.operator'])
    expect(reached).toEqual([])
  })
})

test('an attack in Base64 is found in both alphabets, with and without padding [S63]', () => {
  const attack = 'a</a>?~<script>alert(1)</script>'
  const standard = Buffer.from(attack).toString('base64')
  const url = Buffer.from(attack).toString('base64url')
  expect(standard).toMatch(/[+/]/)
  for (const text of [standard, standard.replaceAll('+', ' '), standard.replaceAll('=', ''), url])
    expect([text, signatureOf(text)]).toEqual([text, 'cross_site_scripting.script'])
  const long = Buffer.from('x'.repeat(60_000) + attack).toString('base64')
  expect(signatureOf(long)).toBe('cross_site_scripting.script')
})
