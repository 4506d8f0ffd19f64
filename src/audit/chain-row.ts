/** The canonical form of an audit row, over which its hash is computed. */
import * as z from 'zod/mini'

/** Columns of a row by name, with their values in D1. */
export const chainRowSchema = z.record(z.string(), z.union([z.string(), z.number(), z.null()]))

export type ChainRow = Readonly<z.infer<typeof chainRowSchema>>

/**
 * Returns canonical JSON: names sorted by their UTF-16 code units, no white space (RFC 8785).
 * Supports only flat objects of strings, finite numbers and null, which is all that a row contains.
 */
export function canonicalJson(row: ChainRow): string {
  const members = Object.keys(row)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${JSON.stringify(row[name])}`)
  return `{${members.join(',')}}`
}
