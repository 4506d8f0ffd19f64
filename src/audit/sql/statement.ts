/**
 * Statements of the audit trail. A value is always a parameter, and what the databases write differently is a
 * function of the {@link Dialect}, so no statement is read or changed as text.
 */
import type { Dialect, InDialect, Sql, Value } from './dialect.ts'

export type { Sql, Value } from './dialect.ts'

/** A statement as a database gets it. It can be sent to another thread. */
export interface Rendered {
  readonly text: string
  /** In the order of the parameters. */
  readonly values: readonly unknown[]
  /** As in the options of `run`. */
  readonly isRepeated?: boolean
}

/** Returns a statement. Embedded values become parameters, and other parts are inserted. */
export const sql = (texts: TemplateStringsArray, ...parts: Sql['parts']): Sql => ({ texts, parts })

/** Returns SQL without values. The text is of the program, and never of a caller. */
export const text = (constant: string): Sql => ({ texts: [constant], parts: [] })

/** Joins parts, such as conditions with ` AND `. */
export const joined = (parts: readonly (Value | Sql)[], separator: string): Sql => ({
  texts: ['', ...parts.map((_, index) => (index === parts.length - 1 ? '' : separator))],
  parts,
})

/** Joins values with commas, for `IN (…)`. */
export const listed = (values: readonly Value[]): Sql => joined(values, ', ')

/** Reports whether a text contains another one. */
export const contains =
  (whole: Sql, part: Value): InDialect =>
  (dialect) =>
    dialect.contains(whole, part)

export function render(statement: Sql, dialect: Dialect): Rendered {
  const values: unknown[] = []
  let rendered = ''
  function add({ texts, parts }: Sql) {
    for (const [index, constant] of texts.entries()) {
      rendered += constant
      const part = parts[index]
      if (part === undefined) continue
      if (typeof part === 'function') add(part(dialect))
      else if (part === null || typeof part !== 'object' || part instanceof Uint8Array) {
        values.push(part)
        rendered += dialect.parameter(values.length, part)
      } else if ('texts' in part) add(part)
      else {
        values.push(part.value)
        rendered += dialect.parameter(values.length, part.value, part.type)
      }
    }
  }
  add(statement)
  return { text: rendered, values }
}
