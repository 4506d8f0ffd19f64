/** `portcullis policy matrix`: prints which callers may call which routes. */

import { compactTable } from '../compact.ts'
import { createOutput } from '../output.ts'
import { requireProject } from '../project.ts'
import { counted, type Style, table, visible } from '../text.ts'
import { policyFile } from './load.ts'
import { markdownCell } from './markdown.ts'
import { headingOf, loginColumns, type Matrix, type MatrixRow, matrixOf } from './matrix.ts'
import { htmlOf } from './matrix-html.ts'
import { openRevisions } from './revisions.ts'

export interface MatrixOptions {
  readonly json?: boolean
  readonly format?: string
  readonly wide?: boolean
}

const ALLOWED = 'allowed'
const REFUSED = 'refused'
/** In the table. */
const ADMITTED = '✓'
const OUT = '·'

/** Prints the matrix of the policy in the format. */
export async function showMatrix(
  named: string | undefined,
  { json = false, format = 'table', wide = false }: MatrixOptions,
  folder: string,
): Promise<void> {
  const root = requireProject(folder)
  const file = policyFile(named, '[file]', folder, root)
  const matrix = matrixOf(await openRevisions(folder, root).load(file))
  const output = createOutput(json || format === 'json', wide)
  const text = {
    table: () => `${answerOf(matrix)}\n${tableOf(matrix, output.style)}`,
    markdown: () => markdownMatrix(matrix),
    html: () => htmlOf(matrix),
  }[format]
  output.result(matrix, text?.() ?? '')
}

/** Returns how many routes each caller may call, in one line. */
export function answerOf({ callers, rows }: Matrix): string {
  const counts = callers.map(
    (caller) => `${caller} ${rows.filter(({ admits }) => admits[caller]).length}`,
  )
  return visible(`${counted(rows.length, 'row')}; may call: ${counts.join(', ')}`)
}

/**
 * Returns a table with marks. On a terminal, limits have only their names. Where names of callers do not fit, numbers
 * are the headings.
 */
function tableOf(matrix: Matrix, style: Style): string {
  const isTerminal = Number.isFinite(style.width)
  const rowsFor = (keys: readonly string[]) =>
    matrix.rows.map((row) => ({
      route: row.route,
      ...Object.fromEntries(
        matrix.callers.map((caller, at) => [keys[at], row.admits[caller] ? ADMITTED : OUT]),
      ),
      ...notesOf(row),
      ...(isTerminal && { limits: row.limits.map((limit) => limit.split(' ')[0]).join(' ') }),
      session: row.session ?? '',
      authentication: row.authentication ?? '',
    }))
  const last = ['relation', 'limits', ...loginColumns(matrix)]
  const named = table(rowsFor(matrix.callers), ['route', ...matrix.callers, ...last], style)
  if (!isTerminal || isTable(named, matrix.rows.length)) return named
  const numbers = matrix.callers.map((_, at) => String(at + 1))
  const legend = matrix.callers.map((caller, at) => visible(`${at + 1} ${caller}`)).join(', ')
  const { text } = compactTable(rowsFor(numbers), ['route', ...numbers, ...last], style)
  return `${legend}\n${text}`
}

/** Whether a table did not become blocks, and no row wraps. */
const isTable = (text: string, rows: number): boolean => text.split('\n').length === rows + 1

const cellsOf = ({ admits }: MatrixRow, { callers }: Matrix) =>
  Object.fromEntries(callers.map((caller) => [caller, admits[caller] ? ALLOWED : REFUSED]))

const notesOf = ({ relation, observed, limits }: MatrixRow) => ({
  relation: observed.includes('relation') ? `${relation} (observed)` : (relation ?? ''),
  limits: limits.join('; '),
})

export function markdownMatrix(matrix: Matrix): string {
  const logins = loginColumns(matrix)
  const headings = ['Route', ...matrix.callers, 'Relation', 'Limits', ...logins.map(headingOf)]
  const lines = matrix.rows.map((row) => {
    const { relation, limits } = notesOf(row)
    const cells = Object.values(cellsOf(row, matrix))
    const ofLogin = logins.map((name) => row[name] ?? '')
    return [row.route, ...cells, relation, limits, ...ofLogin].map(markdownCell)
  })
  return [headings.map(markdownCell), headings.map(() => '---'), ...lines]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n')
}
