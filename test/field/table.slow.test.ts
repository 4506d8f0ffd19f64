/** Cases from the field: what users of comparable products reported, tried on each runtime. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Check, FieldCase } from './case.ts'
import { startFieldGateway } from './gateway.ts'
import { EVERY_RUNTIME } from './runtimes.ts'
import { FIELD_CASES } from './table.ts'

const ROOT = join(import.meta.dirname, '../..')
const SOURCE = /^(?:own|RFC \d+|[\w.-]+\/[\w.-]+#\d+)$/

type Checked = FieldCase & { readonly proof: Check }
const isChecked = (row: FieldCase): row is Checked => 'run' in row.proof

/** The gateways that the table needs: one for each set of variables. */
const checked = Map.groupBy(FIELD_CASES.filter(isChecked), ({ proof }) =>
  JSON.stringify(proof.variables ?? {}),
)

describe.each(EVERY_RUNTIME)('on %s', (runtime) => {
  for (const [variables, rows] of checked) {
    const cases = rows.filter(({ runtimes }) => runtimes.some((name) => name === runtime))
    if (cases.length === 0) continue
    describe(variables === '{}' ? 'with the usual variables' : 'with variables of its own', () => {
      let started: Awaited<ReturnType<typeof startFieldGateway>>
      beforeAll(async () => {
        const issuers = cases.flatMap(({ proof }) => proof.issuers ?? [])
        started = await startFieldGateway(runtime, JSON.parse(variables), issuers)
      })
      afterEach(() => started.reset())
      afterAll(() => started?.close())

      for (const { symptom, proof } of cases) test(symptom, () => proof.run(started.gateway))
    })
  }
})

describe('the table', () => {
  const texts = new Map<string, string>()
  const textOf = (path: string) => {
    const text = texts.get(path) ?? readFileSync(join(ROOT, path), 'utf8')
    texts.set(path, text)
    return text
  }

  test('has each symptom once, with its source, the right result and a runtime', () => {
    expect(new Set(FIELD_CASES.map(({ symptom }) => symptom)).size).toBe(FIELD_CASES.length)
    for (const { symptom, sources, expected, runtimes } of FIELD_CASES) {
      expect(sources.length, symptom).toBeGreaterThan(0)
      for (const source of sources) expect(source, symptom).toMatch(SOURCE)
      expect(expected, symptom).not.toBe('')
      expect(runtimes.length, symptom).toBeGreaterThan(0)
    }
  })

  test('names only tests that exist', () => {
    const named = FIELD_CASES.flatMap(({ proof }) => ('tests' in proof ? proof.tests : []))
    const missing = named.filter((name) => {
      const [path = '', title = ''] = name.split(' > ')
      return title === '' || !textOf(path).includes(title)
    })
    expect(missing).toEqual([])
  })
})
