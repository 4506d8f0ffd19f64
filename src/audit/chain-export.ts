/** What an exported part of the chain looks like: one JSON object to a line, hashes and all. */
import * as z from 'zod'
import { PARTITION } from './chain.ts'
import type { ChainRow } from './chain-row.ts'

/** Rows and checkpoints of a range, each in the order of `seq`, a row before its checkpoints. */
export interface ChainPart {
  readonly rows: readonly ChainRow[]
  readonly checkpoints: readonly ChainRow[]
}

/** Digits of a `seq` in a name: names then stand in the order of the chain. */
const SEQ_DIGITS = 15

/** Name of the object that holds these rows: `audit/0/{first}-{last}.ndjson`. */
export const exportName = (firstSeq: number, lastSeq: number): string =>
  `audit/${PARTITION}/${padded(firstSeq)}-${padded(lastSeq)}.ndjson`

const padded = (seq: number) => String(seq).padStart(SEQ_DIGITS, '0')

/** Lines `{"event":{…}}` and `{"checkpoint":{…}}`, columns by their names in D1. */
export function ndjsonOf({ rows, checkpoints }: ChainPart): string {
  const lines = [
    ...rows.map((event) => ({ seq: Number(event.seq), line: { event } })),
    ...checkpoints.map((checkpoint) => ({ seq: Number(checkpoint.seq), line: { checkpoint } })),
  ]
  // Stable: a checkpoint stays behind its row.
  lines.sort((a, b) => a.seq - b.seq)
  return lines.map(({ line }) => `${JSON.stringify(line)}\n`).join('')
}

const columns = z.record(z.string(), z.union([z.string(), z.number(), z.null()]))
const lineSchema = z.union([
  z.strictObject({ event: columns }),
  z.strictObject({ checkpoint: columns }),
])

/** Reads what {@link ndjsonOf} wrote. Throws an `Error` that names the line that is something else. */
export function partOf(text: string): ChainPart {
  const rows: ChainRow[] = []
  const checkpoints: ChainRow[] = []
  for (const [index, line] of text.split('\n').entries()) {
    if (line === '') continue
    const parsed = lineSchema.safeParse(JSON.parse(line)).data
    if (parsed === undefined) throw new Error(`line ${index + 1} is no row and no checkpoint`)
    if ('event' in parsed) rows.push(parsed.event)
    else checkpoints.push(parsed.checkpoint)
  }
  return { rows, checkpoints }
}
