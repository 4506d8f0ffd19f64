/** The queries of the audit trail on SQLite, in a file of Node and in D1. */
import type { Dialect } from '../dialect.ts'
import { sql, text } from '../statement.ts'

/** Returns the bytes that have a bit. */
function bytesWith(bit: number): string {
  let bytes = ''
  for (let byte = 0; byte < 256; byte += 1)
    if (byte & (1 << bit)) bytes += byte.toString(16).padStart(2, '0')
  return bytes
}
const BYTES_WITH: string[] = []

export const SQLITE_QUERIES: Dialect = {
  parameter: () => '?',
  contains: (whole, part) => sql`instr(${whole}, ${part}) > 0`,
  // SQLite has no function for a bit. The probe is a part of the text, so that few values are bound.
  hasBit(column, probe) {
    BYTES_WITH[probe & 7] ??= bytesWith(probe & 7)
    const byte = `substr(${column}, 1 + ${probe >>> 3} % length(${column}), 1)`
    return text(`instr(X'${BYTES_WITH[probe & 7]}', ${byte}) > 0`)
  },
}
