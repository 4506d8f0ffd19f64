/** Exported files of the audit trail's chain, as pages of it. */
import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { StoredRow } from './chain-hash.ts'
import { Failure, REFUSED, usage } from './failure.ts'
import type { ChainPage, Extent } from './verify.ts'

/** As the audit Worker names them: first and last row. */
const RANGE = /^(\d{15})-(\d{15})\.ndjson$/
const ENDING = '.ndjson'

export interface ExportedChain {
  /** Each a file; none of them knows where the chain ends. */
  readonly pages: readonly ChainPage[]
  readonly extent: Required<Extent>
}

interface ExportFile {
  readonly rows: readonly StoredRow[]
  readonly checkpoints: readonly StoredRow[]
  readonly first: number
  readonly last: number
}

/**
 * Reads files and folders of them (`*.ndjson`, with what is below), in the order of their rows,
 * however they are given. A name with a range says which rows have to be there. Throws a
 * {@link Failure} for what cannot be read.
 */
export async function readExports(paths: readonly string[]): Promise<ExportedChain> {
  const names = (await Promise.all(paths.map(filesOf))).flat()
  const files = await Promise.all([...new Set(names)].map(fileOf))
  files.sort((a, b) => a.first - b.first)
  const [first, last] = [files[0], files.at(-1)]
  if (first === undefined || last === undefined) throw usage('--file: there is no .ndjson file')
  return {
    pages: files.map(({ rows, checkpoints }) => ({ rows, checkpoints, head: null })),
    extent: { from: first.first, to: last.last },
  }
}

async function filesOf(path: string): Promise<readonly string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path]
    const names = await readdir(path, { recursive: true })
    return names.filter((name) => name.endsWith(ENDING)).map((name) => join(path, name))
  } catch {
    throw usage(`--file: ${path} cannot be read`)
  }
}

async function fileOf(path: string): Promise<ExportFile> {
  const text = await readFile(path, 'utf8').catch(() => {
    throw usage(`--file: ${path} cannot be read`)
  })
  const [rows, checkpoints]: [StoredRow[], StoredRow[]] = [[], []]
  for (const [index, line] of text.split('\n').entries()) {
    if (line === '') continue
    const { event, checkpoint } = lineOf(line)
    if (event) rows.push(event)
    else if (checkpoint) checkpoints.push(checkpoint)
    else {
      const detail = `${path}: line ${index + 1} is no row of the audit trail`
      throw new Failure(REFUSED, 'unreadable_export', detail)
    }
  }
  const [, first, last] = RANGE.exec(basename(path)) ?? []
  return {
    rows,
    checkpoints,
    first: Number(first ?? rows[0]?.seq ?? 1),
    last: Number(last ?? rows.at(-1)?.seq ?? 0),
  }
}

function lineOf(line: string): { readonly event?: StoredRow; readonly checkpoint?: StoredRow } {
  try {
    const { event, checkpoint } = JSON.parse(line) as Record<string, unknown>
    if (isRow(event)) return { event }
    return isRow(checkpoint) ? { checkpoint } : {}
  } catch {
    return {}
  }
}

const isRow = (value: unknown): value is StoredRow =>
  typeof value === 'object' &&
  value !== null &&
  Object.values(value).every(
    (column) => column === null || typeof column === 'string' || typeof column === 'number',
  )
