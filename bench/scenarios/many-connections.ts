/** Thousands of connections that stay open, at a moderate rate, and what they take of memory. */
import { setTimeout as sleep } from 'node:timers/promises'
import { countsBetween } from '../backends.ts'
import { residentBytesOf } from '../memory/heap.ts'
import { startRequestsGateway, warmUp } from '../requests/gateway.ts'
import { createKeepAliveLoad, type KeepAliveAnswers } from '../requests/keep-alive-load.ts'
import { refuseOther } from '../requests/observe.ts'
import { read } from '../requests/questions.ts'
import type { Figure, Scenario } from '../scenario.ts'
import { rounded } from '../statistics.ts'
import { untilQuiet } from '../usage.ts'

const FEW = 20
const CALLERS = 200
/**
 * workerd ends a connection on which nothing has come for five seconds: each connection's turn comes
 * sooner than that.
 */
const EFFORTS = {
  quick: { connections: 500, ratePerSecond: 250, seconds: 3, fewSeconds: 2 },
  full: { connections: 5_000, ratePerSecond: 1_500, seconds: 60, fewSeconds: 20 },
} as const
/** Until what a closed connection has held is given back. */
const CLOSED_MS = 1_000
const BYTES_PER_MEGABYTE = 1_048_576
const KILOBYTES_PER_MEGABYTE = 1_024

export const manyConnections: Scenario = {
  id: 'many-connections',
  title: 'Many connections',
  measures:
    'The whole pipeline at a fixed rate over thousands of connections that stay open (500 in a quick ' +
    'run), each with its turn; the same rate over 20 connections before that.',
  answers: ['subzero-connections'],
  asserts: [
    'Every answer is the origin’s, to the byte; 503 (`overloaded`, `dependency_unavailable`), and no ' +
      'answer, are counted apart.',
    'Every right answer has reached the origin, once, and has cost one call to Redis.',
    'All connections are open at the end.',
  ],
  runtimes: ['workerd'],
  seconds: { quick: 13, full: 95 },

  async run(context) {
    const { connections, ratePerSecond, seconds, fewSeconds } = EFFORTS[context.effort]
    const gateway = await startRequestsGateway(context, { isolates: { gateway: 'gateway' } })
    const url = gateway.urlOf('gateway')
    const questions = (await gateway.mint(CALLERS)).map(({ credential }) => read(credential))
    await warmUp(gateway, { url, questions })

    context.onProgress(`${FEW} connections`)
    const few = createKeepAliveLoad(url, questions, FEW)
    const base = await few.offer({ ratePerSecond, seconds: fewSeconds })
    const memoryBefore = residentMb(gateway.pid)
    few.close()

    context.onProgress(`opening ${connections} connections`)
    const many = createKeepAliveLoad(url, questions, connections)
    await many.offer({ ratePerSecond, seconds: connections / ratePerSecond })
    await untilQuiet(gateway.backends)
    const before = await gateway.backends.counts()
    context.onProgress(`${connections} connections for ${seconds} s`)
    const answers = await many.offer({ ratePerSecond, seconds })
    const memoryDuring = residentMb(gateway.pid)
    const open = many.open()
    await untilQuiet(gateway.backends)
    const counts = countsBetween(before, await gateway.backends.counts())
    const reopened = many.opened() - connections
    many.close()
    await sleep(CLOSED_MS)
    const memoryAfter = residentMb(gateway.pid)
    await gateway.close()

    const each = rounded(((memoryDuring - memoryBefore) * KILOBYTES_PER_MEGABYTE) / connections, 1)
    const notOk = answers.offered - answers.right
    refuseOther(answers.right, counts, { origin: 1, redis: 1 }, { url, connections: notOk })
    if (open < connections)
      throw new Error(`${open} of ${connections} connections were open at the end`)
    return {
      figures: [
        of('connections', 'connections', 'count', connections),
        of('share-ok', 'share ok', '%', shareOk(answers)),
        of('p50', 'p50', 'ms', answers.latencies.percentile(0.5)),
        of('p99', 'p99', 'ms', answers.latencies.percentile(0.99)),
        of('p50-few', `p50 with ${FEW} connections`, 'ms', base.latencies.percentile(0.5)),
        of('p99-few', `p99 with ${FEW} connections`, 'ms', base.latencies.percentile(0.99)),
        of('reopened', 'connections that had to be opened again', 'count', reopened),
        of('memory', 'memory of the gateway', 'MB', rounded(memoryDuring, 1)),
        of('memory-few', `memory with ${FEW} connections`, 'MB', rounded(memoryBefore, 1)),
        of('memory-after', 'memory once they are closed', 'MB', rounded(memoryAfter, 1)),
        // In a few seconds the heap of a young process grows more than its connections take.
        ...(context.effort === 'quick'
          ? []
          : [of('memory-each', 'memory that a connection adds', 'KB', each)]),
      ],
      checks: [
        { what: 'wrong answers', seen: `0 of ${answers.offered.toLocaleString('en')}` },
        { what: 'connections open at the end', seen: `${open} of ${connections}` },
        {
          what: 'requests that were shed, got no answer, or were not sent',
          seen: `${answers.shed}, ${answers.failed} and ${answers.notSent}`,
        },
      ],
      notes: [
        `${connections.toLocaleString('en')} connections for ${seconds} s at ${ratePerSecond} req/s: ` +
          'the 60 minutes that others state were not run.',
        'Latency counts from when a request was due. One process holds all connections; it needs as ' +
          'many open files (`ulimit -n`), and so does workerd.',
        'Memory is the resident set of workerd: what its heap has grown by meanwhile, for whatever ' +
          'reason, is in what a connection seems to add.',
      ],
      details: { few: countsOf(base), many: countsOf(answers) },
    }
  },
}

const of = (id: string, title: string, unit: Figure['unit'], value: number): Figure => ({
  ...{ id, title, unit, value },
  beside: ['subzero-connections'],
})

const shareOk = ({ right, offered }: KeepAliveAnswers): number =>
  rounded((100 * right) / offered, 3)

const countsOf = ({ latencies: _, ...counts }: KeepAliveAnswers) => counts

function residentMb(pid: number): number {
  const bytes = residentBytesOf(pid)
  if (bytes === undefined) throw new Error('the gateway has ended by itself')
  return bytes / BYTES_PER_MEGABYTE
}
