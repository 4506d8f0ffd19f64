import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { generateSchemas } from '../../../dev/schemas/generate.ts'
import { ROOT } from '../../harness/process.ts'

test('the JSON Schemas are those of the present source; else run `npm run schemas`', () => {
  const folder = join(ROOT, 'schemas')
  const files = readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')])
  expect(Object.fromEntries(files)).toEqual(Object.fromEntries(generateSchemas()))
})
