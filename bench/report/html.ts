/** Builds HTML and escapes text in it. */

/** Safe markup: all external text in it is escaped. */
export interface Html {
  readonly markup: string
}

type Piece = Html | readonly Html[] | string | number | undefined

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Escapes text, also for quoted attributes. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? character)
}

/** Template tag for markup. Escapes every value that is not markup; `undefined` is empty. */
export function html(strings: TemplateStringsArray, ...pieces: readonly Piece[]): Html {
  return { markup: String.raw({ raw: strings }, ...pieces.map(markupOf)) }
}

/** Returns existing markup unchanged. Never pass text that was read from a file. */
export function trusted(markup: string): Html {
  return { markup }
}

function markupOf(piece: Piece): string {
  if (piece === undefined) return ''
  if (typeof piece === 'object') {
    return 'markup' in piece ? piece.markup : piece.map(({ markup }) => markup).join('')
  }
  return escapeHtml(String(piece))
}

/** Formats text; parts between backticks are code. */
export function prose(text: string): Html {
  const parts = text.split(/`([^`]+)`/)
  return html`${parts.map((part, index) =>
    index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`,
  )}`
}

export type Cell = Html | string

/** Number of columns from which a table needs a minimum width on a phone. */
const MANY = 5
const NUMERIC = /^[-+]?[\d,.]+(?: ?(?:ms|us|s|\/s|%|KB|MB|MB\/min|bytes|cores))?$/

/**
 * Returns a table with a caption. The first cell of a row is its heading; numbers are aligned. A
 * table that is wider than the page scrolls.
 */
export function tableOf(
  caption: string,
  headings: readonly string[],
  rows: readonly (readonly Cell[])[],
): Html {
  const numeric = headings.map(
    (_, column) =>
      column > 0 &&
      rows.length > 0 &&
      rows.every(([...cells]) => {
        const cell = cells[column] ?? ''
        return typeof cell === 'string' && (cell === '' || cell === '-' || NUMERIC.test(cell))
      }),
  )
  const many = headings.length < MANY ? undefined : trusted(' class="many"')
  const align = (column: number) =>
    numeric[column] === true ? trusted(' class="number"') : undefined
  const cellOf = (cell: Cell, column: number) => {
    const content = typeof cell === 'string' ? prose(cell) : cell
    return column === 0
      ? html`<th scope="row">${content}</th>`
      : html`<td${align(column)}>${content}</td>`
  }
  return html`<div class="wide" role="region" aria-label="${caption}" tabindex="0"><table${many}>
<caption>${caption}</caption>
<thead><tr>${headings.map((heading, column) => html`<th scope="col"${align(column)}>${heading}</th>`)}</tr></thead>
<tbody>${rows.map((row) => html`<tr>${row.map(cellOf)}</tr>\n`)}</tbody>
</table></div>`
}
