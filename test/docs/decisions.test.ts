/** The list of decision records, and references to records. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ROOT } from '../harness/process.ts'
import { DOCUMENTS, readDocument } from './documents.ts'

const FOLDER = 'docs/decisions'
const ROW = /^\| (?:\[(\d{4})\]\(([\w.-]+)\)|(\d{4})) \| (.*?) ?\| (.+) \|$/gm
const LINK = /\[(\d{4})\]\([\w.-]+\)/g
const CODE = ['src', 'cli', 'dev', 'test', 'bench', 'workers', 'examples', 'ops', 'migrations']
const REFERENCE = /(?:\bdecisions?[/ ]|\/decisions\/)(\d{4})\b/g

const rows = [...readDocument(`${FOLDER}/index.md`).matchAll(ROW)].map(
  ([, linked, file, plain, title = '', status = '']) => ({
    number: linked ?? plain ?? '',
    file,
    title,
    status,
  }),
)
const byNumber = new Map(rows.map((row) => [row.number, row]))
const isInForce = (number: string): boolean =>
  byNumber.get(number)?.status.startsWith('in force') === true
const records = readdirSync(join(ROOT, FOLDER)).filter((file) => /^\d{4}-/.test(file))

test('the list has each number once, each record with its title, and no other record', () => {
  expect(rows.map(({ number }) => Number(number))).toEqual(rows.map((_, index) => index + 1))
  expect(rows.flatMap(({ file }) => file ?? [])).toEqual(records.sort())
  for (const file of records) {
    const [heading] = readDocument(join(FOLDER, file)).split('\n', 1)
    expect(heading).toBe(`# ${file.slice(0, 4)}: ${byNumber.get(file.slice(0, 4))?.title}`)
  }
})

test('a record without a page is superseded by one in force, or its number was not used', () => {
  for (const { number, file, status } of rows) {
    if (status === 'not used') expect(file, number).toBeUndefined()
    else if (file === undefined) expect(status, number).toMatch(/^superseded by /)
    for (const [, successor = ''] of status.matchAll(LINK)) {
      expect(isInForce(successor), `${number} -> ${successor}`).toBe(true)
      if (file !== undefined)
        expect(readDocument(join(FOLDER, file)).split('\n')[2], number).toContain(`[${successor}]`)
    }
  }
})

test('code and documents refer only to records in force', () => {
  const code = CODE.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(?:ts|mjs|lua|sql|ya?ml)$/.test(entry.name))
      .map(({ parentPath, name }) => join(parentPath, name))
      .filter((path) => !/\/(?:node_modules|dist|\.wrangler)\//.test(path)),
  )
  const documents = DOCUMENTS.filter((path) => path !== `${FOLDER}/index.md`)
  const paths = [...code, ...documents.map((path) => join(ROOT, path))]
  const references = paths.flatMap((path) =>
    [...readFileSync(path, 'utf8').matchAll(REFERENCE)].map(([, number = '']) => ({
      path: path.slice(ROOT.length),
      number,
    })),
  )
  expect(references.length).toBeGreaterThan(50)
  expect(references.filter(({ number }) => !isInForce(number))).toEqual([])
})
