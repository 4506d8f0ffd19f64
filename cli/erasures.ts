/** Erased rows of the audit trail, compared with what the trail says of erasures. */
import type { ChainFinding } from './chain.ts'
import type { RowState, StoredRow } from './chain-hash.ts'

export interface Erasures {
  /** Takes the next row, and what it is. */
  row(row: StoredRow, state: RowState): void
  /** How many rows were erased, and how many of them by an erasure that is not in what was looked at. */
  counts(): { readonly erased: number; readonly unexplained: number }
  /** `isAll`: nothing comes behind the rows. Call it after the last one. */
  findings(isAll: boolean): readonly ChainFinding[]
}

interface Seen {
  rows: number
  /** The first of them. */
  seq: number
}

const BEGUN = 'audit.erasure-begun'
const DONE = 'audit.erasure-done'
/** Of an erasure that is done: how many rows it took. */
const COUNT = /^audit_erased:(\d{1,15})$/

/** An erasure leaves two events in the chain, and no more erased rows than the second one says. */
export function createErasures(): Erasures {
  const seen = new Map<string, Seen>()
  /** Most rows that each may have taken; without end while it is under way. */
  const allowed = new Map<string, number>()

  function explain({ change, reason }: StoredRow): void {
    const { action, target } = changeIn(change)
    if (action === BEGUN && !allowed.has(target)) allowed.set(target, Number.POSITIVE_INFINITY)
    if (action !== DONE) return
    const [, rows] = COUNT.exec(String(reason)) ?? []
    if (rows !== undefined) allowed.set(target, Number(rows))
  }

  return {
    row(row, state) {
      if (state === 'whole') explain(row)
      if (state !== 'erased') return
      const erasure = String(row.erasure)
      const one = seen.get(erasure) ?? { rows: 0, seq: Number(row.seq) }
      one.rows += 1
      seen.set(erasure, one)
    },
    counts() {
      const all = [...seen]
      const unknown = all.filter(([erasure]) => !allowed.has(erasure))
      const sum = (some: typeof all) => some.reduce((rows, [, one]) => rows + one.rows, 0)
      return { erased: sum(all), unexplained: sum(unknown) }
    },
    findings: (isAll) =>
      [...seen].flatMap(([erasure, { rows, seq }]): ChainFinding[] => {
        const most = allowed.get(erasure) ?? (isAll ? 0 : Number.POSITIVE_INFINITY)
        if (rows <= most) return []
        const detail = `${rows} rows say that ${erasure} erased them, and it erased ${most}`
        return [{ kind: 'erasure', seq, detail }]
      }),
  }
}

function changeIn(text: unknown): { readonly action: string; readonly target: string } {
  try {
    const { action, target } = JSON.parse(String(text)) as Record<string, unknown>
    return { action: String(action), target: String(target) }
  } catch {
    return { action: '', target: '' }
  }
}
