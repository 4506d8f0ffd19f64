/** Conditions on the filter of a block, which is the column `terms` of `audit_blocks`. */
import { probesOf } from '../blocks/terms.ts'
import { joined, type Sql, sql } from './statement.ts'

/** Returns SQL that reports whether the filter of a block may contain a term. */
export const mayContain = (term: string): Sql =>
  sql`(${joined(
    probesOf(term).map((probe) => sql`${({ hasBit }) => hasBit('terms', probe)}`),
    ' AND ',
  )})`
