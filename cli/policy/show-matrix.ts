/** `portcullis policy matrix`: prints which callers may call which routes. */
import { createOutput } from '../output.ts'
import { requireProject } from '../project.ts'
import { table } from '../text.ts'
import { policyFile } from './load.ts'
import { markdownCell } from './markdown.ts'
import { headingOf, loginColumns, type Matrix, type MatrixRow, matrixOf } from './matrix.ts'
import { htmlOf } from './matrix-html.ts'
import { openRevisions } from './revisions.ts'

export interface MatrixOptions {
  readonly json?: boolean
  readonly format?: string
}

const ALLOWED = 'allowed'
const REFUSED = 'refused'

/** Prints the matrix of the policy in the format. */
export async function showMatrix(
  named: string | undefined,
  { json = false, format = 'table' }: MatrixOptions,
  folder: string,
): Promise<void> {
  const root = requireProject(folder)
  const file = policyFile(named, '[file]', folder, root)
  const matrix = matrixOf(await openRevisions(folder, root).load(file))
  const output = createOutput(json || format === 'json')
  const rows = matrix.rows.map((row) => ({
    route: row.route,
    ...cellsOf(row, matrix),
    ...notesOf(row),
    session: row.session ?? '',
    authentication: row.authentication ?? '',
  }))
  const logins = loginColumns(matrix)
  const text = {
    table: () =>
      table(rows, ['route', ...matrix.callers, 'relation', 'limits', ...logins], output.style),
    markdown: () => markdownMatrix(matrix),
    html: () => htmlOf(matrix),
  }[format]
  output.result(matrix, text?.() ?? '')
}

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
