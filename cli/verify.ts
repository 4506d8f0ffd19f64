/**
 * Verifies the chain of the audit trail page by page, and reports changed, missing and moved rows.
 */
import type { JSONWebKeySet } from 'jose'
import { eventOfLine } from '../src/audit/blocks/line.ts'
import { searchColumnsOf, searchDigest } from '../src/audit/blocks/search-columns.ts'
import { faultOfEnd, faultOfGap } from '../src/audit/chain-ends.ts'
import { type ChainFinding, createChainRows, type Gap } from './chain.ts'
import { rowsOfBlock, type StoredBlock, type StoredRow } from './chain-hash.ts'
import { createCheckpoints } from './checkpoints.ts'
import { createErasures } from './erasures.ts'

/** A page of `GET /-/admin/audit/chain`. */
export interface ChainPage {
  readonly rows: readonly StoredRow[]
  readonly blocks?: readonly StoredBlock[]
  readonly checkpoints: readonly StoredRow[]
  readonly head: { readonly seq: number; readonly hash: string } | null
  readonly unchained?: number
  readonly next?: number
}

export interface Verdict {
  readonly ok: boolean
  /** Number of events in the chain. */
  readonly events: number
  /** `seq` of the first and last row; null if there are none. */
  readonly first: number | null
  readonly last: number | null
  /**
   * Hash of the last row. A copy that is kept elsewhere reveals a later rewrite of the whole chain.
   */
  readonly hash: string | null
  readonly checkpoints: number
  /** Number of checkpoints with a valid signature; null if no keys were given. */
  readonly signed: number | null
  /** `seq` of the last row that a valid signature covers; null if no keys were given. */
  readonly sealed: number | null
  /** Number of rows outside the chain, which were written before the chain existed. */
  readonly unchained: number
  /** Number of rows with erased personal data. */
  readonly erased: number
  /** How many of them belong to an erasure that the verified rows do not record. */
  readonly unexplained: number
  /**
   * Rows of the first format that hashes do not prove: from the row after a signed checkpoint, or the first one, to an
   * erased row.
   */
  readonly unproven: readonly Range[]
  readonly findings: readonly ChainFinding[]
}

/** Rows from a `seq` to another one. */
interface Range {
  readonly from: number
  readonly to: number
}

/** The extent of a chain that is read from files. */
export interface Extent {
  /** `seq` of the first expected row. Earlier rows are not checked. */
  readonly from: number
  /** `seq` of the last expected row; undefined if more rows follow the files. */
  readonly to?: number
}

/** Reads all pages with `read` and verifies them. Rejects if `read` rejects. */
export async function verifyChain(
  read: (after: number) => Promise<ChainPage>,
  keys: JSONWebKeySet | undefined,
  extent?: Extent,
): Promise<Verdict> {
  const rows = createChainRows()
  const checkpoints = createCheckpoints(keys)
  const erasures = createErasures()
  const unsearchable: ChainFinding[] = []
  let [events, unchained] = [0, 0]
  let first: number | null = null
  let after: number | undefined = 0
  let head: ChainPage['head'] = null
  while (after !== undefined) {
    const page: ChainPage = await read(after)
    const hashes = new Map<unknown, unknown>()
    for (const { seq, row, block } of inOrder(page)) {
      first ??= seq
      if (row !== undefined) {
        erasures.row(row, rows.row(row))
        hashes.set(row.seq, row.hash)
      }
      if (block !== undefined) {
        if (rows.block(block)) {
          for (const one of rowsOfBlock(block)) erasures.row(...one)
          unsearchable.push(...(await searchFindings(block)))
        }
        hashes.set(block.last_seq, block.hash)
      }
      events += block?.lines.length ?? 1
    }
    for (const one of page.checkpoints) await checkpoints.checkpoint(one, hashes.get(one.seq))
    unchained += page.unchained ?? 0
    head = page.head
    after = page.next
  }
  const last = rows.last()
  const pruned = checkpoints.pruned()
  const gone = extent === undefined ? (pruned?.seq ?? 0) : extent.from - 1
  const gaps = [...rows.gaps()]
  const end = extent?.to ?? head?.seq ?? 0
  if (end > Math.max(last.seq, gone)) {
    gaps.push({ from: Math.max(last.seq, gone) + 1, to: end, previousHash: head?.hash })
  }
  const isTruncated = extent?.to !== undefined
  const findings = [
    ...gaps.flatMap((gap) => gapFindings(gap, gone, pruned)),
    ...rows.findings(),
    ...unsearchable,
    ...checkpoints.findings(),
    ...checkpoints
      .orphans()
      .filter((seq) => seq > gone && !gaps.some(({ from, to }) => from <= seq && seq <= to))
      .map((seq): ChainFinding => ({ kind: 'checkpoint', seq, detail: 'its row is missing' })),
    ...(isTruncated ? [] : headFindings(head, last.seq === 0 ? (pruned ?? last) : last)),
    ...erasures.findings(!isTruncated),
  ].sort((a, b) => a.seq - b.seq)
  const { signed, checkpoints: count } = checkpoints.counts()
  return {
    ok: findings.length === 0,
    events,
    first,
    last: events === 0 ? null : last.seq,
    hash: typeof last.hash === 'string' && events > 0 ? last.hash : null,
    checkpoints: count,
    signed: keys === undefined ? null : signed,
    sealed: keys === undefined ? null : checkpoints.sealed(),
    unchained,
    ...erasures.counts(),
    unproven: unprovenRows(rows.withoutProof(), checkpoints.signed(), first ?? 1),
    findings,
  }
}

/**
 * Nothing proves the `previous_hash` of an erased row of the first format. So rows before it can be replaced, up to
 * the last one that a signature covers.
 */
function unprovenRows(
  erased: readonly number[],
  signed: readonly number[],
  first: number,
): readonly Range[] {
  const ranges = new Map<number, number>()
  for (const to of erased) {
    const before = signed.findLast((seq) => seq < to) ?? 0
    ranges.set(Math.max(before + 1, first), to)
  }
  return [...ranges].map(([from, to]) => ({ from, to }))
}

/** Compares what searches read of a block with its events. */
async function searchFindings(block: StoredBlock): Promise<readonly ChainFinding[]> {
  const { first_seq: seq, last_seq, lines, search, start_ms = null } = block
  if (search === undefined) return []
  const columns = searchColumnsOf(lines.map(eventOfLine))
  // An erasure by a version before leaves an earlier time, and such a block is found nevertheless.
  const isFound = start_ms === null || start_ms <= columns.start_ms
  if (isFound && search === (await searchDigest(columns))) return []
  const detail = `what queries read of the events ${seq} to ${last_seq} does not match the events`
  return [{ kind: 'search', seq, detail }]
}

interface ChainPart {
  readonly seq: number
  readonly row?: StoredRow
  readonly block?: StoredBlock
}

function inOrder({ rows, blocks = [] }: ChainPage): readonly ChainPart[] {
  const parts: ChainPart[] = [
    ...rows.map((row) => ({ seq: Number(row.seq), row })),
    ...blocks.map((block) => ({ seq: block.first_seq, block })),
  ]
  return parts.sort((a, b) => a.seq - b.seq)
}

/** Returns the findings for one gap. Rows up to `gone` may be missing. */
function gapFindings(
  gap: Gap,
  gone: number,
  pruned: { readonly seq: number; readonly hash: unknown } | undefined,
): ChainFinding[] {
  const { from, to } = gap
  const fault = faultOfGap(gap, gone, pruned)
  if (fault === 'missing') {
    const start = Math.max(from, gone + 1)
    const detail =
      start === to ? 'it is missing' : `${to - start + 1} rows are missing, up to ${to}`
    return [{ kind: 'missing', seq: start, detail }]
  }
  return fault === 'pruned'
    ? [{ kind: 'checkpoint', seq: to, detail: 'the next row has another hash of it' }]
    : []
}

function headFindings(
  head: ChainPage['head'],
  last: { readonly seq: number; readonly hash: unknown },
): ChainFinding[] {
  const { seq } = last
  const fault = faultOfEnd(head, last)
  if (fault === 'unrecorded')
    return [{ kind: 'head', seq, detail: 'the end of the chain is not recorded' }]
  if (fault === 'continues')
    return [{ kind: 'head', seq: head?.seq ?? 0, detail: `the chain continues to ${seq}` }]
  return fault === undefined
    ? []
    : [{ kind: 'changed', seq, detail: 'the end of the chain is recorded with another hash' }]
}
