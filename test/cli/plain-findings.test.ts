import { expect, test } from 'vitest'
import * as z from 'zod/mini'
import { plainFinding } from '../../cli/plain-findings.ts'
import { findingsOf } from '../../src/validators/findings.ts'
import { ruleOf } from '../../src/validators/rule.ts'

const LISTING = 'portcullis bans list'

/** Values that schemas of the gateway refuse, and what the command line says of each. */
test.each<[string, z.core.$ZodType, unknown, string]>([
  ['a lower bound', z.number().check(z.minimum(300)), 1, 'must be at least 300'],
  ['an upper bound', z.number().check(z.maximum(9)), 10, 'must be at most 9'],
  ['an open bound', z.number().check(z.gt(0)), 0, 'must be more than 0'],
  ['an open upper bound', z.number().check(z.lt(2)), 2, 'must be less than 2'],
  ['a fraction', z.int(), 1.5, 'must be a whole number'],
  ['a step', z.number().check(z.multipleOf(5)), 3, 'must be a multiple of 5'],
  ['an empty text', z.string().check(z.minLength(1)), '', 'must have at least 1 character'],
  ['a long text', z.string().check(z.maxLength(2)), 'abc', 'must have at most 2 characters'],
  ['a length', z.string().check(z.length(2)), 'abc', 'must have exactly 2 characters'],
  ['an empty list', z.array(z.string()).check(z.minLength(1)), [], 'must have at least 1 item'],
  ['an option', z.enum(['a', 'b', 'c']), 'd', 'must be a, b or c'],
  ['one option', z.literal('a'), 'd', 'must be a'],
  ['another type', z.string(), 1, 'must be text'],
  ['null', z.boolean(), null, 'must be true or false'],
  ['a list', z.looseObject({}), [], 'must be an object'],
  ['no value', z.string(), undefined, 'is missing'],
  ['a URL', z.url(), 'a', 'must be a URL'],
  ['a time', z.iso.datetime(), 'a', 'must be an ISO datetime'],
  ['a pattern', z.string().check(z.regex(/^a/)), 'b', 'must match pattern /^a/'],
  ['a beginning', z.string().check(z.startsWith('a')), 'b', 'must start with "a"'],
  ['alternatives', z.union([z.number(), z.boolean()]), 'b', 'is not valid; see --help'],
  ['an unknown member', z.strictObject({}), { a: 1 }, 'Unknown keys are not allowed'],
  ['a message of our own', z.uuid('must be a cursor'), 'a', 'must be a cursor'],
])('a finding about %s says what the value must be', (_, schema, value, message) => {
  const [finding] = findingsOf('body', schema, value, '', ruleOf)
  expect(finding && plainFinding(finding, LISTING).message).toBe(message)
})

test('a finding about an id names the command that lists the ids', () => {
  const [finding] = findingsOf('params', z.object({ id: z.uuid() }), { id: 'nonsense' }, '', ruleOf)
  expect(finding && plainFinding(finding, LISTING)).toEqual({
    in: 'params',
    path: '/id',
    message: 'must be an id, which is a UUID; `portcullis bans list` shows the ids',
  })
})

test.each([
  [300, '5m'],
  [301, '301s'],
  [3_600, '1h'],
  [7_776_000, '90d'],
])('a bound of %d seconds has the form of an option', (seconds, text) => {
  const schema = z.object({ expiresInSeconds: z.number().check(z.minimum(seconds)) })
  const [finding] = findingsOf('body', schema, { expiresInSeconds: 1 }, '', ruleOf)
  expect(finding && plainFinding(finding, LISTING).message).toBe(`must be at least ${text}`)
})

test('a finding of an earlier gateway, without a rule, keeps its message', () => {
  const finding = { in: 'body', path: '/name', message: 'Too small: expected string' }
  expect(plainFinding(finding, LISTING)).toEqual(finding)
})

test('the rule of a finding describes the schema, and never contains the value', () => {
  const schema = z.object({ a: z.strictObject({}), b: z.union([z.boolean(), z.int()]), c: z.url() })
  const secret = 'hush-4711'
  const findings = findingsOf(
    'body',
    schema,
    { a: { [secret]: 1 }, b: secret, c: secret },
    '',
    ruleOf,
  )
  expect(findings.map(({ path, rule }) => [path, rule?.code])).toEqual([
    ['/a', undefined],
    ['/b', 'invalid_union'],
    ['/c', 'invalid_format'],
  ])
  expect(JSON.stringify(findings)).not.toContain(secret)
})
