/** Reads exported files of the audit chain as pages. */
import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import * as z from 'zod/mini'
import type { StoredBlock, StoredRow } from './chain-hash.ts'
import { Failure, refused, usage } from './failure.ts'
import type { ChainPage } from './verify.ts'

/** File names of the audit Worker: `seq` of the first and the last row. */
const RANGE = /^(\d{15})-(\d{15})\.ndjson$/
const ENDING = '.ndjson'

interface ExportFile {
  readonly path: string
  readonly first: number
  readonly last: number
}

type FileRows = Pick<ChainPage, 'rows' | 'checkpoints'> & {
  readonly blocks: readonly StoredBlock[]
}

/**
 * Finds exported files (`*.ndjson`) in the given files and folders, subfolders included, and sorts
 * them by their rows. A file name with a range determines which rows must be present. Throws a
 * {@link Failure} if a file cannot be read; the reader does the same.
 */
export async function readExports(paths: readonly string[]) {
  const names = (await Promise.all(paths.map(filesOf))).flat()
  const files: ExportFile[] = []
  for (const path of new Set(names)) files.push(await fileOf(path))
  files.sort((a, b) => a.first - b.first)
  const [first, last] = [files[0], files.at(-1)]
  if (first === undefined || last === undefined) throw usage('--file: no .ndjson file found')
  return {
    extent: { from: first.first, to: last.last },
    /**
     * Returns a page reader for `verifyChain`. It reads one file for each call, and then calls
     * `fetchPage` for the rows after the last file.
     */
    reader(
      fetchPage?: (after: number) => Promise<ChainPage>,
    ): (after: number) => Promise<ChainPage> {
      let given = 0
      return async (after) => {
        const file = files[given]
        if (file === undefined)
          return fetchPage ? fetchPage(after) : { rows: [], checkpoints: [], head: null }
        given += 1
        const hasNext = given < files.length || fetchPage !== undefined
        const page = { ...(await rowsOf(file.path)), head: null }
        return hasNext ? { ...page, next: last.last } : page
      }
    },
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

/** Returns the row range of a file. Reads the file only if its name does not contain the range. */
async function fileOf(path: string): Promise<ExportFile> {
  const [, first, last] = RANGE.exec(basename(path)) ?? []
  if (first !== undefined) return { path, first: Number(first), last: Number(last) }
  const { rows, blocks } = await rowsOf(path)
  if (rows.length + blocks.length === 0)
    throw refused('unreadable_export', `${path}: the file contains no row`)
  const begin = Math.min(Number(rows[0]?.seq ?? Infinity), blocks[0]?.first_seq ?? Infinity)
  const end = Math.max(Number(rows.at(-1)?.seq ?? 0), blocks.at(-1)?.last_seq ?? 0)
  return { path, first: begin, last: end }
}

async function rowsOf(path: string): Promise<FileRows> {
  const text = await readFile(path, 'utf8').catch(() => {
    throw usage(`--file: ${path} cannot be read`)
  })
  const [rows, checkpoints]: [StoredRow[], StoredRow[]] = [[], []]
  const blocks: (Omit<StoredBlock, 'lines'> & { readonly lines: string[] })[] = []
  for (const [index, line] of text.split('\n').entries()) {
    if (line === '') continue
    const { event, checkpoint, block, entry } = lineOf(line)
    const open = blocks.at(-1)
    if (event) rows.push(event)
    else if (checkpoint) checkpoints.push(checkpoint)
    else if (block) blocks.push({ ...block, lines: [] })
    // Entries follow their block, in their order.
    else if (entry && open && entry.seq === open.first_seq + open.lines.length)
      open.lines.push(entry.text)
    else {
      const detail = `${path}: line ${index + 1} is not a row of the audit trail`
      throw refused('unreadable_export', detail)
    }
  }
  return { rows, checkpoints, blocks }
}

interface ExportLine {
  readonly event?: StoredRow
  readonly checkpoint?: StoredRow
  readonly block?: Omit<StoredBlock, 'lines'>
  readonly entry?: { readonly seq: number; readonly text: string }
}

const blockSchema = z.strictObject({
  first_seq: z.number(),
  last_seq: z.number(),
  previous_hash: z.string(),
  hash: z.string(),
})
const entrySchema = z.strictObject({ seq: z.number(), text: z.string() })
const checkpointSchema = z.strictObject({
  partition: z.literal('0'),
  seq: z.number(),
  kind: z.enum(['sealed', 'pruned']),
  hash: z.string(),
  time_ms: z.number(),
  signature: z.nullable(z.string()),
})

function lineOf(line: string): ExportLine {
  try {
    const value = JSON.parse(line) as Record<string, unknown>
    // The gateway writes it so. Otherwise a repeated member could show another value to another reader.
    if (JSON.stringify(value) !== line || Object.keys(value).length !== 1) return {}
    const { event, checkpoint, block, entry } = value
    if (isRow(event)) return { event }
    if (checkpoint !== undefined) return { checkpoint: checkpointSchema.parse(checkpoint) }
    if (block !== undefined) return { block: blockSchema.parse(block) }
    return { entry: entrySchema.parse(entry) }
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
