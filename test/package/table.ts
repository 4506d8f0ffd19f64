/** The table of consumers: what a project of each kind can do with the package. */

export const COLUMNS = ['install', 'types', 'build', 'run'] as const
type Column = (typeof COLUMNS)[number]

/** Undefined: the consumer has no such step. */
type Cells = Partial<Record<Column, 'ok' | 'failed'>>

export interface Table {
  /** Runs the steps of a consumer in order, until one fails. Throws its error. */
  row(consumer: string, steps: Partial<Record<Column, () => Promise<unknown>>>): Promise<void>
  /** Formats the table as text. */
  text(): string
}

export function createTable(): Table {
  const rows: (readonly [string, Cells])[] = []
  return {
    async row(consumer, steps) {
      const cells: Cells = {}
      rows.push([consumer, cells])
      for (const column of COLUMNS) {
        const step = steps[column]
        if (step === undefined) continue
        cells[column] = 'failed'
        await step()
        cells[column] = 'ok'
      }
    },

    text() {
      const lines = [
        ['consumer', ...COLUMNS],
        ...rows.map(([consumer, cells]) => [
          consumer,
          ...COLUMNS.map((column) => cells[column] ?? '-'),
        ]),
      ]
      const widths = lines[0]?.map((_, at) =>
        Math.max(...lines.map((line) => line[at]?.length ?? 0)),
      )
      return lines
        .map((line) =>
          line
            .map((cell, at) => cell.padEnd(widths?.[at] ?? 0))
            .join('  ')
            .trimEnd(),
        )
        .join('\n')
    },
  }
}
