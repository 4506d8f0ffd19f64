import { describe, expect, test } from 'vitest'
import { Misconfigured } from '../../src/errors.ts'
import { cors } from '../../src/features/cors/index.ts'
import type { CorsDefinition } from '../../src/policy/cors.ts'
import { definePolicy } from '../../src/policy/policy.ts'

/** The mistakes of a policy whose only route has these rules. */
function mistakesIn(definition: unknown): string {
  try {
    definePolicy({
      roles: {},
      limits: {},
      routes: [{ method: 'GET', path: '/', anonymous: true, cors: cors(definition as never) }],
    })
  } catch (error) {
    if (error instanceof Misconfigured) return error.message
    throw error
  }
  return ''
}

describe('the rules are checked when the policy is defined', () => {
  test.each<[string, CorsDefinition]>([
    ['an exact origin', { origins: ['https://app.example.com'], credentials: true }],
    ['a port', { origins: ['http://localhost:5173'] }],
    ['a pattern', { origins: ['https://*.example.com', 'https://*.example.com:8443'] }],
    ['every page', { origins: '*' }],
  ])('%s is accepted', (_, definition) => {
    expect(mistakesIn(definition)).toBe('')
  })

  const ORIGIN = /cors\.origins\[0\]: must be an origin such as https:\/\/app\.example\.com or/
  test.each<[string, unknown, RegExp]>([
    ['a path', { origins: ['https://app.example.com/'] }, ORIGIN],
    ['the opaque origin', { origins: ['null'] }, ORIGIN],
    ['capitals', { origins: ['https://App.example.com'] }, ORIGIN],
    ['a default port', { origins: ['https://app.example.com:443'] }, ORIGIN],
    ['a pattern for all names', { origins: ['https://*'] }, ORIGIN],
    ['a pattern for a top-level domain', { origins: ['https://*.com'] }, ORIGIN],
    ['two wildcards', { origins: ['https://*.*.example.com'] }, ORIGIN],
    ['a wildcard inside of a label', { origins: ['https://pr-*.example.com'] }, ORIGIN],
    ['a wildcard behind the host', { origins: ['https://app.*.example.com'] }, ORIGIN],
    ['no origin', { origins: [] }, /cors\.origins: /],
    [
      'credentials for a pattern',
      { origins: ['https://*.example.com'], credentials: true },
      /cors: credentials requires exact origins, without "\*"/,
    ],
    [
      'credentials for every page',
      { origins: '*', credentials: true },
      /cors: credentials requires exact origins/,
    ],
    [
      'a wildcard of headers',
      { origins: '*', exposeHeaders: ['*'] },
      /cors\.exposeHeaders\[0\]: must be the name of a header/,
    ],
    ['two header names', { origins: '*', allowHeaders: ['A, B'] }, /cors\.allowHeaders\[0\]/],
    ['an unknown field', { origins: '*', origin: 'x' }, /cors: .*origin/],
    [
      'an unknown limit',
      { origins: '*', limits: ['unknown'] },
      /GET \/: cors\.limits: unknown limit unknown/,
    ],
  ])('%s is a mistake', (_, definition, mistake) => {
    expect(mistakesIn(definition)).toMatch(mistake)
  })

  test('rules that cors() did not create are refused, with the import', () => {
    expect(() =>
      definePolicy({
        roles: {},
        limits: {},
        routes: [{ method: 'GET', path: '/', anonymous: true, cors: { origins: '*' } as never }],
      }),
    ).toThrow(/cors: must be the result of cors\(\); import \{ cors \} from 'portcullis\/cors'/)
  })
})
