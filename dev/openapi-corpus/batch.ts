/** Examines the documents that its arguments name, and prints a line of JSON for each. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { examine } from './examine.ts'

const [requests = '0', ...documents] = process.argv.slice(2)
const folder = mkdtempSync(join(tmpdir(), 'openapi-corpus-'))
try {
  for (const document of documents)
    console.log(JSON.stringify(await examine(document, { folder, requests: Number(requests) })))
} finally {
  rmSync(folder, { recursive: true, force: true })
}
