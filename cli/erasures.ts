/** Compares erased rows of the audit trail with the erasures that the trail records. */

import type { ChainFinding } from './chain.ts'
import type { RowState, StoredRow } from './chain-hash.ts'
import { objectIn } from './json.ts'

interface Seen {
  rows: number
  /** Position of the first one. */
  seq: number
}

const BEGUN = 'audit.erasure-begun'
const DONE = 'audit.erasure-done'
/** Reason of the final event of an erasure: the number of rows that it erased. */
const COUNT = /^audit_erased:(\d{1,15})$/

/**
 * Creates a checker of erasures. A complete erasure leaves two events in the chain, and the second
 * one records the maximum number of erased rows.
 */
export function createErasures() {
  const seen = new Map<string, Seen>()
  /** Maximum number of erased rows by erasure id. Infinity while the erasure is in progress. */
  const allowed = new Map<string, number>()

  function explain({ change, reason }: StoredRow): void {
    if (change === null) return
    const { action, target } = (objectIn(String(change)) ?? {}) as Record<string, unknown>
    if (typeof target !== 'string') return
    if (action === BEGUN && !allowed.has(target)) allowed.set(target, Number.POSITIVE_INFINITY)
    if (action !== DONE) return
    const [, rows] = COUNT.exec(String(reason)) ?? []
    if (rows !== undefined) allowed.set(target, Number(rows))
  }

  return {
    /** Adds the next row and its state. */
    row(row: StoredRow, state: RowState): void {
      if (state === 'whole') explain(row)
      if (state !== 'erased') return
      const erasure = String(row.erasure)
      const one = seen.get(erasure) ?? { rows: 0, seq: Number(row.seq) }
      one.rows += 1
      seen.set(erasure, one)
    },
    /**
     * Returns the number of erased rows, and how many of them belong to an erasure that the given
     * rows do not record.
     */
    counts(): { readonly erased: number; readonly unexplained: number } {
      const all = [...seen]
      const unknown = all.filter(([erasure]) => !allowed.has(erasure))
      const sum = (some: typeof all) => some.reduce((rows, [, one]) => rows + one.rows, 0)
      return { erased: sum(all), unexplained: sum(unknown) }
    },
    /** Returns all findings. `isAll`: no rows follow the given ones. Call it after the last row. */
    findings: (isAll: boolean): readonly ChainFinding[] =>
      [...seen].flatMap(([erasure, { rows, seq }]): ChainFinding[] => {
        const most = allowed.get(erasure) ?? (isAll ? 0 : Number.POSITIVE_INFINITY)
        if (rows <= most) return []
        const detail = `${rows} rows name the erasure ${erasure}, but it erased only ${most}`
        return [{ kind: 'erasure', seq, detail }]
      }),
  }
}
