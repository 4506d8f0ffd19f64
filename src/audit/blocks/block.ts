/** A block of the chain: consecutive events with one hash. Pure: no I/O, no clock. */
import { type Digest, sha256 } from '../../crypto/sha256.ts'
import type { Block, ChainPlace } from '../chain.ts'
import type { AuditEvent } from '../event.ts'
import { timeMs } from '../time-of-event.ts'
import { coveredBy, lineOf } from './line.ts'
import type { LinedEvent } from './written-line.ts'

/** Events of a block may be this far apart, so that a search by time reads few blocks. */
export const MAX_SPAN_MS = 60_000
/** Of the lines, so that a compressed block is far below the 1 MB that D1 binds. */
const MAX_CHARACTERS = 400_000
const MAX_EVENTS = 250

/**
 * Returns the hash of a block: the SHA-256 of the previous hash, the number of the first event, and for
 * each event its public part and its commitments, each in a line.
 */
export async function hashOfBlock(
  { previous_hash, first_seq, lines }: Omit<Block, 'hash' | 'last_seq'>,
  digest: Digest = sha256,
): Promise<string> {
  let text = `${previous_hash}\n${first_seq}`
  for (const line of lines) text += `\n${await coveredBy(line, digest)}`
  return digest(text)
}

/** An event to store. One with a line is complete only there. */
export type GivenEvent = AuditEvent | LinedEvent

export interface BlockEvents {
  readonly events: GivenEvent[]
  readonly lines: string[]
}

/** Orders events by time, and separates them into blocks. */
export function intoBlocks(events: readonly GivenEvent[]): readonly BlockEvents[] {
  const timed = events.map((event) => ({ event, ms: timeMs(event.time) }))
  timed.sort((a, b) => a.ms - b.ms)
  const blocks: BlockEvents[] = []
  let [sinceMs, characters] = [0, 0]
  for (const { event: given, ms } of timed) {
    const [event, line] = 'line' in given ? [given, given.line] : storable(given, lineOf(given))
    let block = blocks.at(-1)
    const isFull =
      block === undefined ||
      ms - sinceMs > MAX_SPAN_MS ||
      characters + line.length > MAX_CHARACTERS ||
      block.events.length === MAX_EVENTS
    if (isFull) {
      block = { events: [], lines: [] }
      blocks.push(block)
      sinceMs = ms
      characters = 0
    }
    block?.events.push(event)
    block?.lines.push(line)
    characters += line.length
  }
  return blocks
}

/** JSON escapes a NUL and a lone surrogate so. */
const ODD = /\\u(?:0000|d[89a-f])/

/** Replaces NUL and lone surrogates, as in rows, so that an erasure finds a person beside them. */
function storable(event: AuditEvent, line: string): readonly [AuditEvent, string] {
  if (!ODD.test(line)) return [event, line]
  const text = JSON.stringify(event, (_, value) =>
    typeof value === 'string' ? value.toWellFormed().replaceAll('\0', '\ufffd') : value,
  )
  const stored = JSON.parse(text) as AuditEvent
  return [stored, lineOf(stored)]
}

/** Chains blocks after a place. Returns them and the place of the last event. */
export async function chainBlocks(
  head: ChainPlace,
  all: readonly BlockEvents[],
  digest: Digest = sha256,
): Promise<{ readonly blocks: readonly Block[]; readonly head: ChainPlace }> {
  const blocks: Block[] = []
  let { seq, hash } = head
  for (const { lines } of all) {
    const place = { first_seq: seq + 1, previous_hash: hash, lines }
    hash = await hashOfBlock(place, digest)
    seq += lines.length
    blocks.push({ ...place, last_seq: seq, hash })
  }
  return { blocks, head: { seq, hash } }
}
