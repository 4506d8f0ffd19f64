/** `portcullis policy check` for the policies of this repository, and its SARIF. */
import { readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import Ajv from 'ajv'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { checkPolicy, examine } from '../../../cli/policy/check.ts'
import { sarifOf } from '../../../cli/policy/sarif.ts'
import { ROOT } from '../../harness/process.ts'

/** Findings that the policies have on purpose: they show every field, or belong to a protocol. */
const KNOWN: Readonly<Record<string, readonly string[]>> = {
  'portcullis.config.ts': ['look-alike-routes'],
  'examples/books/policy.ts': [],
  'examples/configuration/policy.ts': [
    'login-age',
    'look-alike-routes',
    'observe-mode',
    'unchecked-body',
    'ungranted-permission',
    'unlimited-route',
  ],
  // The end of a session has no limit.
  'examples/mcp/policy.ts': [],
  'examples/minimal/policy.ts': [],
  'examples/node/policy.ts': [],
  'examples/shop/policy.ts': [],
  'examples/testing/policy.ts': [],
  'packages/create-portcullis/templates/gateway/portcullis.config.ts': [],
}

describe.each(Object.entries(KNOWN))('%s', (path, known) => {
  test('has no mistakes, and only known findings, each at a place of its source', async () => {
    const file = join(ROOT, path)
    const { findings } = await examine(file, ROOT)
    expect([...new Set(findings.map(({ rule }) => rule))].sort()).toEqual([...known].sort())
    const lines = readFileSync(file, 'utf8').split('\n')
    for (const { severity, place, message } of findings) {
      expect(severity).not.toBe('error')
      const [, route = ''] = /^[A-Z]+ (\/\S*):/.exec(message) ?? []
      // The path of the route is on the line, or in the lines around it.
      expect(lines.slice(place.line - 5, place.line + 6).join('\n')).toContain(`'${route}'`)
    }
  })
})

const schema = JSON.parse(
  readFileSync(
    join(ROOT, 'node_modules/@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json'),
    'utf8',
  ),
)

test('the SARIF of findings matches the schema of OASIS, and names files below the project', async () => {
  const { findings } = await examine(join(ROOT, 'examples/configuration/policy.ts'), ROOT)
  // Ajv knows the names of later drafts.
  const { $schema: _, id: __, ...document } = schema
  const validate = new Ajv({ strict: false, validateFormats: false, unicodeRegExp: false }).compile(
    document,
  )
  const log = sarifOf(findings, ROOT)
  expect(validate(log), JSON.stringify(validate.errors)).toBe(true)
  expect(log).toMatchObject({ runs: [{ results: { length: findings.length } }] })
  expect(JSON.stringify(log)).toContain('"uri":"examples/configuration/policy.ts"')
  expect(findings.length).toBeGreaterThan(5)
  expect(relative(ROOT, findings[0]?.place.file ?? '')).toBe('examples/configuration/policy.ts')
})

describe('with --strict', () => {
  afterEach(() => {
    vi.restoreAllMocks()
    process.exitCode = undefined
  })

  test.each([
    [{}, undefined, 'warning'],
    [{ strict: true }, 1, 'error'],
    [{ strict: true, ignore: ['ungranted-permission'] }, undefined, undefined],
  ])('a permission that no caller can have: %j', async (options, code, severity) => {
    const written: string[] = []
    vi.spyOn(process.stdout, 'write').mockImplementation((text) => written.push(String(text)) > 0)
    vi.spyOn(process.stderr, 'write').mockReturnValue(true)
    await checkPolicy('examples/configuration/policy.ts', { ...options, json: true }, ROOT)
    const { findings } = JSON.parse(written.join('')) as {
      readonly findings: readonly { readonly rule: string; readonly severity: string }[]
    }
    const [found] = findings.filter(({ rule }) => rule === 'ungranted-permission')
    expect(found?.severity).toBe(severity)
    expect(process.exitCode).toBe(code)
    process.exitCode = undefined
  })
})
