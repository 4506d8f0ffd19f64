/** The file format of an exported part of the chain: one JSON object in each line. */
import * as z from 'zod/mini'
import { PARTITION } from './chain.ts'
import { type ChainRow, chainRowSchema } from './chain-row.ts'

/** A range, in the order of `seq`. In a file, a row precedes its checkpoints. */
export interface ChainPart {
  readonly rows: readonly ChainRow[]
  readonly checkpoints: readonly ChainRow[]
}

/** Names sort in the order of the chain. */
const SEQ_DIGITS = 15

/** Returns the name of an object: `audit/0/{first}-{last}.ndjson`. */
export const exportName = (firstSeq: number, lastSeq: number): string =>
  `audit/${PARTITION}/${padded(firstSeq)}-${padded(lastSeq)}.ndjson`

const padded = (seq: number) => String(seq).padStart(SEQ_DIGITS, '0')

/** Formats rows as lines `{"event":{…}}` and checkpoints as lines `{"checkpoint":{…}}`. */
export function ndjsonOf({ rows, checkpoints }: ChainPart): string {
  const lines = [
    ...rows.map((event) => ({ seq: Number(event.seq), line: { event } })),
    ...checkpoints.map((checkpoint) => ({ seq: Number(checkpoint.seq), line: { checkpoint } })),
  ]
  // The sort is stable: a checkpoint stays after its row.
  lines.sort((a, b) => a.seq - b.seq)
  return lines.map(({ line }) => `${JSON.stringify(line)}\n`).join('')
}

const lineSchema = z.union([
  z.strictObject({ event: chainRowSchema }),
  z.strictObject({ checkpoint: chainRowSchema }),
])

/** Parses the output of {@link ndjsonOf}. Throws an `Error` that names an invalid line. */
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
