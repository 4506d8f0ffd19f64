/** Imported patterns end on hostile texts of the greatest length that a body can have. */
import { join } from 'node:path'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import * as z from 'zod/mini'
import { patternsIn } from '../../../cli/patterns/in-schemas.ts'
import { DEFAULT_MAX_BODY_BYTES } from '../../../src/policy/defaults.ts'
import { usualOrLong } from '../../harness/long.ts'
import { ROOT } from '../../harness/process.ts'
import { DOCUMENTS, documentOf, importFile, importValue, jsonBody } from '../openapi/import.ts'

/** A pattern in linear time needs milliseconds. An exponential or quadratic one needs hours. */
const TIMEOUT_MS = 60_000

/** Unlike a test's own limit, this one interrupts a regular expression that is running. */
const ends = (run: () => unknown): void =>
  void runInNewContext('run()', { run }, { timeout: TIMEOUT_MS })

/** Each repeats a text that many patterns match in several ways, and ends with one that they refuse. */
const HOSTILE = [
  'a',
  '0',
  ' ',
  '/',
  '.',
  '-',
  ',',
  'ab',
  'a.',
  'a-',
  'a/',
  '0,',
  '@a',
  '%20',
  'é',
  '😀',
]
  .map((part) => part.repeat(Math.floor(DEFAULT_MAX_BODY_BYTES / part.length)))
  .flatMap((text) => [text, `${text.slice(0, -2)}!\n`, `!${text.slice(0, -1)}`])

/** As documents have them, safe or not, and with the largest `maxLength` for which some are safe. */
const SCHEMAS: readonly object[] = [
  { pattern: '^[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\\.[a-zA-Z]{2,}$' },
  { pattern: '^([a-z0-9]+(-[a-z0-9]+)*)$' },
  { pattern: '^([a-zA-Z0-9]+[-_.]?)*$' },
  { pattern: '^(a+)+$' },
  { pattern: '^(\\w+\\s?)*$', maxLength: 64 },
  { pattern: '(a|a)*b' },
  { pattern: '\\s+$' },
  { pattern: '^\\s*|\\s*$' },
  { pattern: '[a-z]+$', maxLength: 500 },
  { pattern: '[a-z]+$', maxLength: 5_000 },
  { pattern: 'a.*b.*c', maxLength: 50 },
  { pattern: '^.*\\d.*[a-z].*$' },
  { pattern: '^(?=.*[a-z])(?=.*\\d).{8,}$' },
  { pattern: '^(https?://)?([\\da-z.-]+)\\.([a-z.]{2,6})([/\\w .-]*)*/?$' },
  { pattern: '^\\d+(\\.\\d+)*(,\\d+(\\.\\d+)*)*$' },
  { pattern: '^[\\s\\S]{1,4096}$' },
  { pattern: '^([^/]+/)*[^/]+$' },
  { pattern: '(x+x+)+y', maxLength: 30 },
  { pattern: '^(?!-)[a-z-]+$' },
]

/** One of each kind: exponential, polynomial with a length, with a look-ahead, and safe with a length. */
const USUAL = [3, 5, 8, 10, 18].map((at) => SCHEMAS[at] ?? {})

describe('an imported schema decides hostile texts of any length [S84]', () => {
  test.each(usualOrLong(USUAL, SCHEMAS))('%j', async (schema) => {
    const text = { type: 'string', ...schema }
    const { pattern, maxLength } = schema as {
      readonly pattern: string
      readonly maxLength?: number
    }
    const named = [
      text,
      { type: 'object', patternProperties: { [pattern]: { type: 'integer' } } },
      { type: 'object', propertyNames: text },
    ]
    for (const [at, one] of named.entries()) {
      const { module } = await importValue(documentOf('/a', jsonBody(one)))
      const body = module.routes[0]?.input?.body
      if (body === undefined) throw new Error('no body')
      // A longer text is refused before its pattern is run.
      for (const hostile of new Set(
        HOSTILE.map((whole) => whole.slice(-(maxLength ?? whole.length))),
      ))
        ends(() => z.safeParse(body, at === 0 ? hostile : { [hostile]: 1 }))
    }
  })
})

describe('every pattern that the importer emits for a document of this repository [S84]', () => {
  const files = [
    join(DOCUMENTS, 'fastapi.json'),
    join(DOCUMENTS, 'nestjs.json'),
    join(ROOT, 'examples', 'openapi', 'openapi.json'),
  ]

  test('ends', async () => {
    let count = 0
    for (const file of files)
      for (const { input } of (await importFile(file)).module.routes)
        for (const schema of Object.values(input ?? {}))
          for (const { pattern, maxLength } of patternsIn(schema)) {
            count += 1
            for (const hostile of HOSTILE)
              ends(() => pattern.test(hostile.slice(-(maxLength ?? hostile.length))))
          }
    expect(count).toBeGreaterThan(0)
  })
})

test('the limit interrupts a pattern that would not end', () => {
  expect(() =>
    runInNewContext('run()', { run: () => /^(a+)+$/.test(`${'a'.repeat(60)}!`) }, { timeout: 50 }),
  ).toThrow(/timed out/)
})
