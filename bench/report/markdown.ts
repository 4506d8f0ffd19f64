/** Renders the report as Markdown for `docs/benchmarks.md`: the same contents without plots. */
import type { Block, Cell, Linked, LinkTo, Section } from './content.ts'

/** Returns a complete document, the same for the same sections. `page` is the path of the page. */
export function markdownOf(sections: readonly Section[], page: string, linkTo: LinkTo): string {
  return `${[
    '# Benchmarks',
    `\`npm run bench:report\` generates this page from the files of results that it names.
[report.html](${linkTo(page)}) shows the same results with plots; open it in a browser.
[bench/README.md](${linkTo('bench/README.md')}) explains the measurements and their limits.`,
    ...sections.flatMap(({ title, blocks }) => [
      `## ${plain(title)}`,
      ...blocks.flatMap((block) => blockOf(block)),
    ]),
  ].join('\n\n')}\n`

  function blockOf(block: Block): readonly string[] {
    switch (block.kind) {
      case 'text':
        return block.onlyOnPage ? [] : [plain(block.text)]
      case 'heading':
        return [`### ${plain(block.text)}`]
      case 'list':
        return [block.items.map((item) => `* ${cellOf(item)}`).join('\n')]
      case 'table': {
        const { title, headings, rows, onlyOnPage } = block
        if (onlyOnPage) return []
        const cells = rows.map((row) => row.map(cellOf))
        return [`${plain(title)}:`, markdownTable(headings.map(plain), cells)]
      }
      case 'plot':
        return []
    }
  }

  function cellOf(cell: Cell): string {
    if (typeof cell === 'string') return plain(cell)
    if ('badge' in cell) return cell.tone === 'good' ? cell.badge : `**${cell.badge}**`
    return 'text' in cell ? linkOf(cell) : cell.map(linkOf).join('; ')
  }

  function linkOf({ text, file }: Linked): string {
    return file === undefined ? plain(text) : `[${plain(text)}](${linkTo(file)})`
  }
}

/** Returns a table. Escapes characters that would end a cell. */
export function markdownTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replace(/\s+/g, ' ').replaceAll('|', '\\|')).join(' | ')} |`
  return [line(headings), line(headings.map(() => '---')), ...rows.map(line)].join('\n')
}

/** Escapes text, so that it contains no markup except code between backticks. */
const plain = (text: string) =>
  text
    .split(/(`[^`]+`)/)
    .map((part, index) => (index % 2 === 1 ? part : part.replace(/[\\`*_[\]<>]/g, '\\$&')))
    .join('')
