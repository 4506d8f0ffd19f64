/** Finds and loads the files of policy tests. */
import { readdirSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { PolicyTestTable } from '../../src/testing/index.ts'
import { REFUSED, usage } from '../failure.ts'
import { invalidPolicy } from './invalid.ts'
import { defaultExport } from './load.ts'

/** Test runners do not collect these names, so that a table is imported by a test, or run here. */
const TEST_FILE = /\.policy-test\.m?[jt]s$/
/** Folders that are not of the project. */
const FOREIGN = /^(?:\..*|node_modules|dist)$/
const TABLE = 'its default export must be { policy, rows }'

/**
 * Returns the absolute paths of the files that are named relative to `folder`, and of the test files in
 * folders that are named. Without names it searches `folder`. Throws a usage failure if there are none.
 */
export function testFiles(named: readonly string[], folder: string): readonly string[] {
  const files = (named.length === 0 ? ['.'] : named).flatMap((name) => {
    const path = resolve(folder, name)
    const found = statSync(path, { throwIfNoEntry: false })
    if (found === undefined) throw usage(`[files]: there is no file or folder ${path}`)
    if (!found.isDirectory()) return [path]
    const below = testFilesBelow(path)
    if (below.length === 0)
      throw usage(`${path} has no *.policy-test.ts or .js; in such a file, ${TABLE}`)
    return below
  })
  return [...new Set(files)]
}

function testFilesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true })
    .sort((one, another) => (one.name < another.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) return FOREIGN.test(entry.name) ? [] : testFilesBelow(path)
      return TEST_FILE.test(entry.name) ? [path] : []
    })
}

/** Loads the table of a file. `root` is the folder of the project. Throws a failure if there is none. */
export async function loadTable(file: string, root: string): Promise<PolicyTestTable> {
  try {
    const table = await defaultExport<Partial<PolicyTestTable> | undefined>(file, root)
    const { policy, rows } = table ?? {}
    if (policy === undefined || !Array.isArray(rows)) throw usage(`${file}: ${TABLE}`)
    return table as PolicyTestTable
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'Misconfigured') throw error
    throw invalidPolicy(REFUSED, file, error)
  }
}
