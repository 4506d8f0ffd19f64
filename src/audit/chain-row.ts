/** A row of the audit trail as it is hashed: columns by name, in one canonical form. */

/** A value of a row, as D1 keeps it. */
export type ChainValue = string | number | null

/** Columns of a row by name. */
export type ChainRow = Readonly<Record<string, ChainValue>>

/**
 * JSON with its names in the order of their UTF-16 code units and no white space: RFC 8785, for
 * flat objects of strings, finite numbers and null, which are all that a row holds.
 */
export function canonicalJson(row: ChainRow): string {
  const members = Object.keys(row)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${JSON.stringify(row[name])}`)
  return `{${members.join(',')}}`
}

/** The columns that say something: a column that is added later changes no hash of before. */
export const told = (row: ChainRow, isTold: (name: string) => boolean): ChainRow =>
  Object.fromEntries(Object.entries(row).filter(([name, value]) => value !== null && isTold(name)))
