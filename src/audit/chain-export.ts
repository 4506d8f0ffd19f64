/** The file format of an exported part of the chain: one JSON object in each line. */
import * as z from 'zod/mini'
import { integer } from '../validators/schema-parts.ts'
import { type Block, PARTITION } from './chain.ts'
import { type ChainRow, chainRowSchema } from './chain-row.ts'

/** A range, in the order of `seq`. In a file, a row or a block precedes its checkpoints. */
export interface ChainPart {
  readonly rows: readonly ChainRow[]
  readonly blocks: readonly Block[]
  readonly checkpoints: readonly ChainRow[]
}

/** Names sort in the order of the chain. */
const SEQ_DIGITS = 15

/** Returns the name of an object: `audit/0/{first}-{last}.ndjson`. */
export const exportName = (firstSeq: number, lastSeq: number): string =>
  `audit/${PARTITION}/${padded(firstSeq)}-${padded(lastSeq)}.ndjson`

const padded = (seq: number) => String(seq).padStart(SEQ_DIGITS, '0')

/**
 * Formats rows as lines `{"event":{…}}` and checkpoints as lines `{"checkpoint":{…}}`. A block is a line
 * `{"block":{…}}`, and a line `{"entry":{…}}` for each of its events.
 */
export function ndjsonOf({ rows, blocks, checkpoints }: ChainPart): string {
  const lines: { readonly seq: number; readonly line: object }[] = [
    ...rows.map((event) => ({ seq: Number(event.seq), line: { event } })),
    ...blocks.flatMap(({ lines: texts, ...block }) => [
      { seq: block.first_seq, line: { block } },
      ...texts.map((text, index) => {
        const seq = block.first_seq + index
        return { seq, line: { entry: { seq, text } } }
      }),
    ]),
    ...checkpoints.map((checkpoint) => ({ seq: Number(checkpoint.seq), line: { checkpoint } })),
  ]
  // The sort is stable: a checkpoint stays after its row.
  lines.sort((a, b) => a.seq - b.seq)
  return lines.map(({ line }) => `${JSON.stringify(line)}\n`).join('')
}

const seq = () => integer().check(z.minimum(1))
const lineSchema = z.union([
  z.strictObject({ event: chainRowSchema }),
  z.strictObject({ checkpoint: chainRowSchema }),
  z.strictObject({
    block: z.strictObject({
      first_seq: seq(),
      last_seq: seq(),
      previous_hash: z.string(),
      hash: z.string(),
    }),
  }),
  z.strictObject({ entry: z.strictObject({ seq: seq(), text: z.string() }) }),
])

/** Parses the output of {@link ndjsonOf}. Throws an `Error` that names an invalid line. */
export function partOf(text: string): ChainPart {
  const rows: ChainRow[] = []
  const checkpoints: ChainRow[] = []
  const blocks: (Omit<Block, 'lines'> & { readonly lines: string[] })[] = []
  for (const [index, line] of text.split('\n').entries()) {
    if (line === '') continue
    const parsed = lineSchema.safeParse(JSON.parse(line)).data
    if (parsed === undefined) throw new Error(`line ${index + 1} is no row and no checkpoint`)
    if ('event' in parsed) rows.push(parsed.event)
    else if ('checkpoint' in parsed) checkpoints.push(parsed.checkpoint)
    else if ('block' in parsed) blocks.push({ ...parsed.block, lines: [] })
    else blocks.at(-1)?.lines.push(parsed.entry.text)
  }
  return { rows, blocks, checkpoints }
}
