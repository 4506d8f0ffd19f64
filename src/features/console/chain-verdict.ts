/** Verifies a part of the chain of the audit trail, for its page. Pure: no I/O. */
import { hashOfBlock } from '../../audit/blocks/block.ts'
import { isLine } from '../../audit/blocks/line.ts'
import { GENESIS } from '../../audit/chain.ts'
import { faultOfEnd, faultOfGap } from '../../audit/chain-ends.ts'
import type { ChainPart } from '../../audit/chain-export.ts'
import type { ChainPage } from '../../audit/log.ts'

/** Where the part is in the chain. */
export interface PartOfChain extends ChainPart {
  /** The event before the part: 0 for the first part. */
  readonly after: number
  /** The hash of that event. Undefined: the visitor has none, and it is not checked. */
  readonly hash: string | undefined
  /** The recorded end of the chain. Undefined: more events follow. */
  readonly head: ChainPage['head'] | undefined
}

export interface Verdict {
  /** `part`: nothing is wrong in what was checked, which was not everything. */
  readonly result: 'yes' | 'part' | 'no'
  readonly text: string
  /** The hash of the last event, with which the next part begins. Undefined: it is not verified. */
  readonly hash?: string
}

/** A row or a block. */
interface Link {
  readonly first: number
  readonly last: number
  readonly previous: unknown
  readonly hash: unknown
  /** Undefined for a row, whose hash only the command computes. */
  readonly isWhole?: () => Promise<boolean>
}

const MATCHES = 'Every hash matches its events and its predecessor.'
const NO_EVENTS = 'No event is stored, and no checkpoint or end contradicts that.'

const no = (text: string): Verdict => ({ result: 'no', text })

/**
 * Computes the hashes of blocks again, and compares each with its predecessor, from the begin of the chain or the last
 * deleted event on; with the checkpoints; and with the recorded end.
 */
export async function verifyPart(part: PartOfChain): Promise<Verdict> {
  const { after, rows, checkpoints, head } = part
  const pruned = checkpoints.findLast(({ kind }) => kind === 'pruned')
  const deleted = pruned && { seq: Number(pruned.seq), hash: pruned.hash }
  const gone = deleted?.seq ?? 0
  let [seq, hash]: [number, unknown] = after === 0 ? [0, GENESIS.hash] : [after, part.hash]
  const hashes = new Map<number, unknown>()
  for (const link of linksOf(part)) {
    const { first, last, previous } = link
    const where = `events ${first} to ${last}`
    if (first <= seq) return no(`The ${where} are not in their place.`)
    if (first > seq + 1) {
      const gap = { from: seq + 1, to: first - 1, previousHash: previous }
      const fault = faultOfGap(gap, gone, deleted)
      if (fault === 'missing') return no(missing(Math.max(gap.from, gone + 1), gap.to))
      if (fault === 'pruned')
        return no(`The predecessor of ${where} is not the one that retention deleted.`)
      hash = undefined
    }
    if (hash !== undefined && previous !== hash)
      return no(`The predecessor of ${where} was changed.`)
    if (link.isWhole !== undefined && !(await link.isWhole()))
      return no(`The ${where} were changed.`)
    ;[seq, hash] = [last, link.hash]
    hashes.set(last, hash)
  }
  for (const checkpoint of checkpoints) {
    const at = Number(checkpoint.seq)
    if (!hashes.has(at) && at > gone) return no(`No event ends at the checkpoint ${at}.`)
    if (hashes.has(at) && hashes.get(at) !== checkpoint.hash)
      return no(`The checkpoint ${at} has another hash than its event.`)
  }
  const isDeleted = hashes.size === 0 && deleted !== undefined
  const fault = endFault(head, isDeleted ? deleted : { seq, hash })
  if (fault !== undefined) return no(fault)
  const unchecked = [
    ...(after > 0 && part.hash === undefined
      ? ['The predecessor of the first event was not checked.']
      : []),
    ...(rows.length > 0 ? ['The hashes of rows of earlier versions were not computed.'] : []),
  ]
  const next = typeof hash === 'string' && { hash }
  return unchecked.length === 0
    ? { result: 'yes', text: hashes.size === 0 ? NO_EVENTS : MATCHES, ...next }
    : { result: 'part', text: unchecked.join(' '), ...next }
}

function endFault(
  head: ChainPage['head'] | undefined,
  last: { readonly seq: number; readonly hash: unknown },
): string | undefined {
  if (head === undefined) return undefined
  if (head !== null && head.seq > last.seq) return missing(last.seq + 1, head.seq)
  const fault = faultOfEnd(head, last)
  if (fault === 'unrecorded') return 'The end of the chain is not recorded.'
  if (fault === 'continues')
    return `The chain is recorded to end at ${head?.seq ?? 0}, before ${last.seq}.`
  return fault && 'The end of the chain is recorded with another hash.'
}

const missing = (from: number, to: number): string =>
  from === to ? `The event ${from} is missing.` : `The events ${from} to ${to} are missing.`

/** Returns the rows and blocks in the order of the chain. */
function linksOf({ rows, blocks }: ChainPart): readonly Link[] {
  const links: Link[] = [
    ...rows.map(({ seq, previous_hash, hash }) => ({
      ...{ first: Number(seq), last: Number(seq), previous: previous_hash, hash },
    })),
    ...blocks.map((block) => ({
      ...{ first: block.first_seq, last: block.last_seq },
      ...{ previous: block.previous_hash, hash: block.hash },
      isWhole: async () =>
        block.last_seq === block.first_seq + block.lines.length - 1 &&
        block.lines.every(isLine) &&
        block.hash === (await hashOfBlock(block)),
    })),
  ]
  return links.sort((a, b) => a.first - b.first)
}
