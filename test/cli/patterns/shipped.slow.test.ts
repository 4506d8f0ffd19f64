/** The run time of every regular expression of the product, and of zod's formats, is linear. */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parser } from '@lezer/javascript'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadRunTimes, type RunTimes } from '../../../cli/patterns/run-time.ts'
import { IS_LONG } from '../../harness/long.ts'
import { ROOT } from '../../harness/process.ts'

const PARSER = parser.configure({ dialect: 'ts' })
let runTimes: RunTimes
beforeAll(async () => {
  // A busy machine turns seconds into more than the default.
  runTimes = await loadRunTimes(60_000)
})

function literalsIn(file: string): readonly RegExp[] {
  const text = readFileSync(file, 'utf8')
  const found: RegExp[] = []
  PARSER.parse(text).iterate({
    enter: ({ name, from, to }) => {
      if (name !== 'RegExp') return
      const [, pattern = '', flags = ''] = /^\/(.*)\/(\w*)$/s.exec(text.slice(from, to)) ?? []
      found.push(new RegExp(pattern, flags))
    },
  })
  return found
}

/** Files whose patterns read only what an operator configures, at start. */
const CONFIGURED: ReadonlySet<string> = new Set([
  'src/crypto/weak-keys.ts',
  'src/http/path-name.ts',
  'src/http/path-pattern.ts',
  'src/http/path-reading.ts',
  'src/http/router.ts',
  'src/origin/origin.ts',
  'src/runtimes/node/environment/server-environment.ts',
  'src/validators/decision-points.ts',
  'src/validators/environment.ts',
  'src/validators/issuer.ts',
  'src/features/otlp/schema.ts',
])
/** Too large for the checker. All counts have bounds, and the second test measures them. */
const MEASURED: ReadonlySet<string> = new Set([
  'src/inspection/media.ts',
  'src/features/signatures/command-injection.ts',
  'src/features/signatures/cross-site-scripting.ts',
  'src/features/signatures/sql-injection.ts',
  // With assertions such as `(?=...)`, which the checker judges by the time of a busy machine.
  'src/features/mcp/resource-uri.ts',
  'src/access/tokens/credential.ts',
  // With two long bounded counts, which the checker judges for seconds.
  'src/features/signatures/multipart.ts',
])

/**
 * Parts of patterns that the checker judges for seconds, which a busy machine turns into its deadline. A long run
 * proves them. Each other run measures them.
 */
const HEAVY = [
  '-----BEGIN ',
  '(?:[01]\\d|2[0-3]):[0-5]\\d',
  '^portcullis_(\\w',
  '|configured:',
  'userpassword',
  '(?<!\\/)\\/+$',
  'max-age=',
]
const isHeavy = (pattern: RegExp) => HEAVY.some((part) => pattern.source.includes(part))

const files = globSync('src/**/*.ts', { cwd: ROOT }).filter((file) => !CONFIGURED.has(file))
const patternsOf = (names: readonly string[]) => [
  ...new Map(
    names.flatMap((file) =>
      literalsIn(join(ROOT, file)).map((pattern) => [String(pattern), { pattern, file }] as const),
    ),
  ),
]

/**
 * A list of patterns that the checker has proven, as hashes of the checker and the pattern. A run proves each pattern
 * that the list did not have `COMMITS` commits ago, because nothing else shows that a new line was proven, and some of
 * the others. A long run proves all.
 * `LONG=1 PROVEN=write npx vitest run --project parts test/cli/patterns/shipped.slow.test.ts` writes the list.
 */
const PROVEN = 'test/cli/patterns/proven.txt'
const COMMITS = 30
const SAMPLE = 20
const linesOf = (text: string): ReadonlySet<string> => new Set(text.split('\n').filter(Boolean))

/** Returns the lines of the list `COMMITS` commits ago. Returns none without Git, in a shallow clone, or before the list. */
function linesBefore(): ReadonlySet<string> {
  const revision = `HEAD~${COMMITS}:${PROVEN}`
  const { status, stdout } = spawnSync('git', ['show', revision], { cwd: ROOT, encoding: 'utf8' })
  return status === 0 ? linesOf(stdout) : new Set()
}

const CHECKER = ['node_modules/recheck/package.json', 'cli/patterns/run-time.ts'].map((file) =>
  readFileSync(join(ROOT, file), 'utf8'),
)
const hashOf = (pattern: RegExp) =>
  createHash('sha256')
    .update(JSON.stringify([CHECKER, String(pattern)]))
    .digest('hex')
    .slice(0, 32)

describe('a pattern that reads what a caller or an origin sends takes linear time [S84]:', () => {
  const listed = linesOf(readFileSync(join(ROOT, PROVEN), 'utf8'))
  const before = linesBefore()
  const all = patternsOf(files.filter((file) => !MEASURED.has(file)))
  const light = all.filter(([, { pattern }]) => !isHeavy(pattern))
  const isProven = (hash: string) => listed.has(hash) && before.has(hash)
  const first = Math.floor(Math.random() * light.length)
  const sample = [...light, ...light].slice(first, first + SAMPLE)
  const checked = light.filter(
    (entry) => !isProven(hashOf(entry[1].pattern)) || sample.includes(entry),
  )
  const results = new Set<string>()

  test.runIf(process.env.PROVEN !== 'write')(
    'each line of the list is a pattern of the product',
    () => {
      const present = new Set(all.map(([, { pattern }]) => hashOf(pattern)))
      expect([...listed].filter((line) => !present.has(line))).toEqual([])
    },
  )

  test.each(IS_LONG ? all : checked)('%s', (_, { pattern, file }) => {
    expect(`${file}: ${runTimes.mistakeIn(pattern) ?? 'linear'}`).toBe(`${file}: linear`)
    results.add(hashOf(pattern))
  })

  afterAll(() => {
    if (IS_LONG && process.env.PROVEN === 'write')
      writeFileSync(join(ROOT, PROVEN), [...results].sort().join('\n'))
  })
})

describe('the time of a measured pattern does not grow faster than its text:', () => {
  const PARTS = [
    'a',
    ' ',
    '.',
    '/',
    '<',
    '"',
    "'",
    '=',
    '(',
    '/*',
    'on',
    'or ',
    'select ',
    '\\',
    '="',
    '="\\',
    '="a" ',
    '%',
    ';',
    '0',
    '-----BEGIN CERTIFICATE-----',
    '\nportcullis_a',
  ]

  /** The least of several runs, because other processes only add time. */
  function timeOf(pattern: RegExp, text: string): number {
    const times = Array.from({ length: 5 }, () => {
      const startMs = performance.now()
      text.replace(pattern, '')
      return performance.now() - startMs
    })
    return Math.min(...times)
  }

  const heavy = patternsOf(files).filter(([, { pattern }]) => isHeavy(pattern))
  test('each part of a heavy pattern is one of a pattern, and no part includes a new one', () => {
    // Two patterns read certificates.
    expect(heavy.map(([text]) => text)).toHaveLength(HEAVY.length + 1)
    for (const part of HEAVY)
      expect(
        heavy.some(([, { pattern }]) => pattern.source.includes(part)),
        part,
      ).toBe(true)
  })

  test.each([...new Map([...patternsOf([...MEASURED]), ...heavy])])('%s', (_, { pattern }) => {
    for (const part of PARTS) {
      const repeats = Math.ceil(4_000 / part.length)
      const short = timeOf(pattern, part.repeat(repeats))
      const long = timeOf(pattern, part.repeat(8 * repeats))
      // Linear is 8, quadratic is 64. Short times have the precision of the clock.
      expect(long / Math.max(short, 0.25), part).toBeLessThan(32)
    }
  })
})
