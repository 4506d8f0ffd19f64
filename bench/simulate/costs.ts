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

export type Costs = ReturnType<typeof readCosts>

/** Reads the costs. Throws an `Error` if a result has another form. */
export function readCosts() {
  return {
    admission: {
      title: 'CPU of Redis for an admission, on one server',
      value: readCell(NODE_RESULTS, 'Portcullis, log', 'Redis us'),
      unit: 'us',
      source: NODE_RESULTS,
    },
    cluster: {
      title: 'the same on a master with one replica, as a factor',
      value: 1.26,
      unit: '',
      source: 'assumption: 51 us and 40 us in one run, without a stored result',
    },
    feedRead: {
      title: 'CPU of Redis to read the feed, with some new entries',
      value: 4,
      unit: 'us',
      source: 'docs/decisions/0038-revocation-feed.md: 2 us without new entries, 15 us with ten',
    },
    request: {
      title: 'CPU of a gateway for a request, on Node with a durable trail',
      value: readFigure(NODE_RESULTS, 'durable-cpu'),
      unit: 'us',
      source: NODE_RESULTS,
    },
    strictWorker: {
      title: 'CPU of a Worker for a request, strict',
      value: readCell(WORKER_RESULTS, 'strict', 'CPU us'),
      unit: 'us',
      source: WORKER_RESULTS,
    },
    leasedWorker: {
      title: 'CPU of a Worker for a request, leased',
      value: readCell(WORKER_RESULTS, 'leased', 'CPU us'),
      unit: 'us',
      source: WORKER_RESULTS,
    },
    rowsPerEvent: {
      title: 'rows that D1 bills for an audit event',
      value: 0.03,
      unit: '',
      source: 'docs/decisions/0108-blocks-of-audit-events.md',
    },
    failover: {
      title: 'until the lanes of a lost master have another one',
      value: 4_200,
      unit: 'ms',
      source:
        'assumption, for a node timeout of 2 s; test/redis/cluster/failover.slow.test.ts kills a master',
    },
    busy: {
      title: 'most use of a core of a master',
      value: 0.5,
      unit: '',
      source: undefined,
    },
    latency: {
      title: 'from a gateway to a master, one way',
      value: 0.25,
      unit: 'ms',
      source: undefined,
    },
    feedBytes: {
      title: 'bytes of a read of the feed and its reply',
      value: 260,
      unit: 'B',
      source: 'docs/storage-schema.md: the digest of the script, the key and two positions',
    },
  } as const satisfies Record<string, Cost>
}
