/** What requests and commands cost: from committed results, or constants with their source. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod'
import { ROOT } from '../../dev/start/settings.ts'

export interface Cost {
  readonly title: string
  readonly value: number
  readonly unit: string
  /** Undefined: an assumption. */
  readonly source: string | undefined
}

const NODE_RESULTS = 'bench/results/2026-11-27-node.json'
const WORKER_RESULTS = 'bench/results/2026-11-27-leases.json'

const resultSchema = z.object({
  measured: z.array(
    z.object({
      figures: z.array(z.object({ id: z.string(), value: z.number() })),
      tables: z
        .array(z.object({ headings: z.array(z.string()), rows: z.array(z.array(z.string())) }))
        .default([]),
    }),
  ),
})

function readFigure(file: string, id: string): number {
  const [measured] = resultSchema.parse(JSON.parse(readFileSync(join(ROOT, file), 'utf8'))).measured
  const figure = measured?.figures.find((each) => each.id === id)
  if (figure === undefined) throw new Error(`${file}: has no figure "${id}"`)
  return figure.value
}

function readCell(file: string, row: string, heading: string): number {
  const [measured] = resultSchema.parse(JSON.parse(readFileSync(join(ROOT, file), 'utf8'))).measured
  for (const { headings, rows } of measured?.tables ?? []) {
    const cells = rows.find(([first]) => first === row)
    const value = Number(cells?.[headings.indexOf(heading)])
    if (value > 0) return value
  }
  throw new Error(`${file}: has no "${heading}" of "${row}"`)
}

const cost = (title: string, value: number, unit: string, source?: string): Cost => ({
  ...{ title, value, unit, source },
})

export type Costs = ReturnType<typeof readCosts>

/** Reads the costs. Throws an `Error` if a result has another form. */
export function readCosts() {
  return {
    admission: cost(
      'CPU of Redis for an admission, on one server',
      readCell(NODE_RESULTS, 'Portcullis, log', 'Redis us'),
      'us',
      NODE_RESULTS,
    ),
    cluster: cost(
      'the same on a master with one replica, as a factor',
      1.26,
      '',
      'assumption: 51 us and 40 us in one run, without a stored result',
    ),
    feedRead: cost(
      'CPU of Redis to read the feed, with some new entries',
      4,
      'us',
      'docs/decisions/0038-revocation-feed.md: 2 us without new entries, 15 us with ten',
    ),
    request: cost(
      'CPU of a gateway for a request, on Node with a durable trail',
      readFigure(NODE_RESULTS, 'durable-cpu'),
      'us',
      NODE_RESULTS,
    ),
    strictWorker: cost(
      'CPU of a Worker for a request, strict',
      readCell(WORKER_RESULTS, 'strict', 'CPU us'),
      'us',
      WORKER_RESULTS,
    ),
    leasedWorker: cost(
      'CPU of a Worker for a request, leased',
      readCell(WORKER_RESULTS, 'leased', 'CPU us'),
      'us',
      WORKER_RESULTS,
    ),
    rowsPerEvent: cost(
      'rows that D1 bills for an audit event',
      0.03,
      '',
      'docs/decisions/0108-blocks-of-audit-events.md',
    ),
    failover: cost(
      'until the lanes of a lost master have another one',
      4_200,
      'ms',
      'assumption, for a node timeout of 2 s; test/redis/cluster/failover.slow.test.ts kills a master',
    ),
    busy: cost('most use of a core of a master', 0.5, ''),
    latency: cost('from a gateway to a master, one way', 0.25, 'ms'),
    feedBytes: cost(
      'bytes of a read of the feed and its reply',
      260,
      'B',
      'docs/storage-schema.md: the digest of the script, the key and two positions',
    ),
  }
}
