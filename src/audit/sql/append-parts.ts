/** Separates events into appends of few statements. Pure: no I/O, no clock. */
import { type GivenEvent, intoBlocks, MAX_SPAN_MS } from '../blocks/block.ts'
import { hourOf } from '../hour-counts.ts'
import { timeMs } from '../time-of-event.ts'

/** Below the 50 that an invocation may make on the free plan of D1, so that other statements fit beside an append. */
const MAX_STATEMENTS = 40
/** Seven queries, the begin and the head of the chain, and a checkpoint. */
const ALWAYS = 10
/** A query of the ids around the block, its row, and its usage. */
const OF_BLOCK = 3

/**
 * Returns the events in parts, in the order of time. An append of a part makes at most about 40 statements, and reads only
 * the ids of blocks near its events. Events of a minute are one part: an append of 100 makes at most 30 statements.
 */
export function appendParts(events: readonly GivenEvent[]): readonly (readonly GivenEvent[])[] {
  if (isShort(events)) return [events]
  const parts: GivenEvent[][] = []
  let hours = new Set<string>()
  let blocks = 0
  for (const block of intoBlocks(events)) {
    const ofBlock = block.events.map(({ time }) => hourOf(time))
    const all = new Set([...hours, ...ofBlock])
    const isFull = ALWAYS + OF_BLOCK * (blocks + 1) + all.size > MAX_STATEMENTS
    const part = isFull ? undefined : parts.at(-1)
    if (part === undefined) {
      parts.push([...block.events])
      hours = new Set(ofBlock)
      blocks = 1
      continue
    }
    part.push(...block.events)
    hours = all
    blocks += 1
  }
  return parts
}

function isShort(events: readonly GivenEvent[]): boolean {
  let [firstMs, lastMs] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const { time } of events) {
    const ms = timeMs(time)
    firstMs = Math.min(firstMs, ms)
    lastMs = Math.max(lastMs, ms)
  }
  return events.length === 0 || lastMs - firstMs <= MAX_SPAN_MS
}
