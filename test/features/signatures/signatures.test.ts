import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { signatures } from '../../../src/features/signatures/index.ts'
import type { InspectOptions } from '../../../src/parts.ts'
import { inspected } from '../../inspection/app.ts'
import { ATTACKS } from './attacks.ts'
import { readFigures, tablesOf } from './figure-tables.ts'
import { HARMLESS } from './harmless-texts.ts'
import { figures, signatureOf } from './signature-figures.ts'

const FORM = 'application/x-www-form-urlencoded'
const JSON_TYPE = 'application/json'
const enforced: InspectOptions = { signatures: signatures({ mode: 'enforce' }) }
/** One sample for each category, which no other category matches. */
const SAMPLES = {
  sql_injection: "x' or 1=1 -- -",
  path_traversal: '../../../../etc/passwd',
  command_injection: '127.0.0.1; whoami',
  ssrf_target: 'http://2852039166/latest/meta-data',
  cross_site_scripting: '"><svg onload=alert(1)>',
  nosql_injection: "', $where: 'sleep(900)",
  ldap_injection: '*)(uid=*))(|(uid=*',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a look-up of Log4j
  template_injection: '${jndi:ldap://a.example/x}',
} as const
const samples = Object.entries(SAMPLES)

describe('an attack in a text is 403 and never reaches the handler, if signatures are enforced [S63]:', () => {
  test.each(samples)('%s', async (category, text) => {
    const { send, reached, reasons } = inspected(enforced)
    const encoded = encodeURIComponent(text)
    const answers = [
      await send(`?q=${encoded}`),
      await send(`?${encoded}=1`),
      // Encoded once more than the inspection decodes.
      await send(`?q=${encodeURIComponent(encoded)}`),
      await send('', `a=b&c=${encoded}`, FORM),
      await send('', JSON.stringify({ a: [{ b: text }] }), JSON_TYPE),
      await send('', JSON.stringify({ [text]: 1 }), JSON_TYPE),
      await send('', text, 'text/plain'),
      await send('', JSON.stringify({ a: Buffer.from(text).toString('base64') }), JSON_TYPE),
      await send(`?q=${Buffer.from(text).toString('base64url')}`),
      await send(`/${Buffer.from(text).toString('base64url')}`),
    ]
    for (const { status, text: body } of answers) {
      expect(status).toBe(403)
      expect(JSON.parse(body)).toEqual({
        type: 'urn:portcullis:problem:input_refused',
        title: 'Input refused',
        status: 403,
        detail: 'The input is not accepted here.',
        code: 'input_refused',
      })
    }
    expect(reasons.every((reason) => reason.startsWith(`${category}.`))).toBe(true)
    expect(reasons).toHaveLength(answers.length)
    expect(reached).toEqual([])
  })
})

describe('an attack is forwarded, if signatures are not enforced [S63]:', () => {
  test.each(samples)('%s', async (category, text) => {
    for (const options of [
      { signatures: signatures() },
      { mode: 'observe', ...enforced },
    ] as const) {
      const { send, reached, observed } = inspected(options)
      expect((await send(`?q=${encodeURIComponent(text)}`)).status).toBe(200)
      expect(reached).toHaveLength(1)
      expect(observed).toEqual([[expect.stringContaining(`signature_matched:${category}.`)]])
    }
  })

  test('each category is recorded once', async () => {
    const { send, observed } = inspected({ signatures: signatures() })
    const { sql_injection: sql, ssrf_target: ssrf } = SAMPLES
    await send('', JSON.stringify([sql, ssrf, `${sql} `, sql]), JSON_TYPE)
    expect(observed).toEqual([
      ['signature_matched:sql_injection.break_out', 'signature_matched:ssrf_target.metadata'],
    ])
  })

  test.each([{}, { signatures: false }] as const)(
    'with %j nothing is searched',
    async (options) => {
      const { send, reached, observed } = inspected(options)
      expect((await send('', SAMPLES.sql_injection, 'text/plain')).status).toBe(200)
      expect(reached).toHaveLength(1)
      expect(observed).toEqual([undefined])
    },
  )

  test('only categories that a route names are searched', async () => {
    const { send, reached } = inspected({
      signatures: signatures({ mode: 'enforce', categories: ['ssrf_target'] }),
    })
    expect((await send('', SAMPLES.sql_injection, 'text/plain')).status).toBe(200)
    expect((await send('', SAMPLES.ssrf_target, 'text/plain')).status).toBe(403)
    expect(reached).toHaveLength(1)
  })
})

describe('scores [S63]', () => {
  test('of several values are summed, and no rule counts twice', async () => {
    const { send, reached, reasons } = inspected(enforced)
    expect((await send('?a=(document.cookie)&b=alert(1)&c=eval(x)')).status).toBe(200)
    expect((await send('?a=%3Ciframe%3E&b=%3Cobject%3E')).status).toBe(200)
    expect((await send('?a=(document.cookie)&b=%3Ciframe%3E')).status).toBe(403)
    // The heavier of the two, 3 and 2.
    expect(reasons).toEqual(['cross_site_scripting.active_element'])
    expect(reached).toHaveLength(2)
  })

  test('of different categories are not summed', async () => {
    const { send } = inspected(enforced)
    expect((await send('?a=%3Ciframe%3E&b=http://localhost:3000/')).status).toBe(200)
  })

  test('let a single rule pass below a higher threshold', async () => {
    const { send } = inspected({ signatures: signatures({ mode: 'enforce', threshold: 6 }) })
    expect((await send('', SAMPLES.sql_injection, 'text/plain')).status).toBe(200)
  })
})

test('a path segment is inspected after decoding [S63]', async () => {
  const { send, reached, reasons } = inspected(enforced)
  expect((await send('/x%27%20or%201=1%20--')).status).toBe(403)
  expect((await send('/plain-segment')).status).toBe(200)
  expect(reasons).toEqual(['sql_injection.break_out'])
  expect(reached).toHaveLength(1)
})

test('form and calls are checked first: malformed input is reported as malformed', async () => {
  const { send, reasons } = inspected(enforced)
  expect((await send(`?a=${encodeURIComponent(SAMPLES.sql_injection)}&b=%00`)).status).toBe(400)
  expect(reasons).toEqual(['query_control'])
})

test('a cached verdict is equal, and applies to exactly that text', async () => {
  const { send, reached } = inspected(enforced)
  const statusOf = async (text: string) => (await send('', text, 'text/plain')).status
  const bad = SAMPLES.sql_injection
  const texts = [bad, bad, "x' or one=two", "x' or one -- -", bad, bad.replace("x'", "x'x'")]
  const statuses: number[] = []
  for (const text of texts) statuses.push(await statusOf(text))
  expect(statuses).toEqual([403, 403, 200, 200, 403, 200])
  expect(reached).toHaveLength(3)
})

test('the lists are long, and no text is in both', () => {
  const attacks = Object.values(ATTACKS).flat()
  expect(attacks.length).toBeGreaterThanOrEqual(500)
  expect(HARMLESS.length).toBeGreaterThanOrEqual(2_000)
  expect(HARMLESS.filter((text) => attacks.includes(text))).toEqual([])
})

test('no harmless text of the list would be refused by enforced signatures', () => {
  expect(HARMLESS.filter((text) => signatureOf(text) !== undefined)).toEqual([])
})

test('the committed figures match these rules and lists (node test/features/signatures/measure.ts)', () => {
  const { others: _, ...committed } = readFigures()
  expect(figures()).toEqual(committed)
})

test('the page of measurements has exactly these figures', () => {
  const file = '../../../docs/design/signature-measurements.md'
  const page = readFileSync(join(import.meta.dirname, file), 'utf8')
  const { harmless, attacks } = tablesOf(readFigures())
  const rows = page.match(/^\| .+ \| [\d,]+ \| [\d,]+ \([\d.]+ %\) \|$/gm)
  expect(rows).toEqual([...harmless, ...attacks])
})
