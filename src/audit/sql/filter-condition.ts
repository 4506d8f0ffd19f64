/** Conditions on the filter of a block, which is the column `terms` of `audit_blocks`. */
import { probesOf } from '../blocks/terms.ts'
import type { AuditDatabase } from './database.ts'
import { type Dialect, SQLITE } from './dialect.ts'

/** Returns SQL that reports whether the filter of a block may contain a term. */
export const mayContain = ({ dialect = SQLITE }: AuditDatabase, term: string): string =>
  probesOf(term)
    .map((probe) => `instr(${bytesWith(dialect, probe & 7)}, ${byteAt(probe >>> 3)}) > 0`)
    .join(' AND ')

const byteAt = (place: number) => `substr(terms, 1 + ${place} % length(terms), 1)`

/** For each bit, the bytes that have it. */
const BYTES_WITH = Array.from({ length: 8 }, (_, bit) => {
  const bytes = Array.from({ length: 256 }, (_, byte) => byte).filter((byte) => byte & (1 << bit))
  return bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('')
})

const bytesWith = (dialect: Dialect, bit: number) => dialect.bytes(BYTES_WITH[bit] ?? '')
