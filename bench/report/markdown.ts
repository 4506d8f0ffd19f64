/** Formats Markdown. Text of results contains no markup, except code between backticks. */

/** Returns a table. Escapes characters that would end a cell. */
export function markdownTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replace(/\s+/g, ' ').replaceAll('|', '\\|')).join(' | ')} |`
  return [line(headings), line(headings.map(() => '---')), ...rows.map(line)].join('\n')
}

/** Returns a table of cells that are not Markdown yet. */
export const plainTable = (
  headings: readonly string[],
  rows: readonly (readonly string[])[],
): string =>
  markdownTable(
    headings.map(plain),
    rows.map((row) => row.map(plain)),
  )

export const listOf = (items: readonly string[]): string =>
  items.map((item) => `* ${plain(item)}`).join('\n')

/** Escapes text, so that it contains no markup except code between backticks. */
export const plain = (text: string): string =>
  text
    .split(/(`[^`]+`)/)
    .map((part, index) => (index % 2 === 1 ? part : part.replace(/[\\`*_[\]<>]/g, '\\$&')))
    .join('')
