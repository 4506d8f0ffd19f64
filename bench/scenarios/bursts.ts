/** Bursts beside busy loops, with a Redis that is well: what they cost, and what the deadline of each call counted. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../dev/free-port.ts'
import { HOST } from '../../dev/start/settings.ts'
import { createClient } from '../load/client.ts'
import { isShed, orders, type Question } from '../load/questions.ts'
import { noneOf, percentile, rounded, sumOf } from '../measure/statistics.ts'
import { oursLog, startOnNode } from '../node/contestants.ts'
import { endWithParent } from '../processes/child.ts'
import { figure, type Scenario, type ScenarioContext } from '../scenario.ts'
import { mintTokens } from '../stack/credentials.ts'
import { startGround, startVariants } from '../stack/gateway.ts'
import { WATCHED_PATH, type WatchedCall } from '../workers/watched.ts'

/** The sizes of `test/isolate/bursts.slow.test.ts`; the second is the default of `maxConcurrentRequests`. */
const SIZES = [200, 1_000] as const
const [LOOPS, ROUNDS] = [[1, 2, 4], 20] as const
/** A loop ends after ten minutes, if nothing else ends it. */
const LOOP = ['-e', 'const end = Date.now() + 600_000; while (Date.now() < end);']
const REST_MS = 100
const PATIENT = { maxSockets: Number.POSITIVE_INFINITY, timeoutMs: 120_000 }

export const bursts: Scenario = {
  id: 'bursts',
  title: 'Bursts beside busy loops, with a Redis that is well',
  measures:
    'Bursts of 200 and of 1,000 requests at once beside 1, 2 and 4 processes that only compute, all of one ' +
    'priority. Redis, its REST server and the origin are processes of their own. For each call to Redis: its ' +
    'duration by the clock, and the part of it that its deadline counted.',
  runtimes: ['workerd', 'node'],
  seconds: { quick: 0, full: 300 },

  async run(context) {
    const { detail, shutdown, onProgress } = context
    const { questions, url, take } = await start(context)
    const client = createClient({ ...PATIENT, repeats: false })
    shutdown.defer(async () => client.close())
    const count = detail.rounds ?? ROUNDS

    async function ask({ path, ...outgoing }: Question): Promise<boolean> {
      const { status, body } = await client.send({ ...outgoing, url: url + path })
      if (status === 200 || isShed(status, body)) return status === 200
      throw new Error(`wrong response from ${url}: ${status} ${body.slice(0, 200)}`)
    }

    async function burst(size: number) {
      // Until the circuit breaker has closed after the burst before.
      do await sleep(REST_MS)
      while (!(await ask(questions[0] as Question)))
      await take()
      const startedMs = performance.now()
      const asked = Array.from({ length: size }, (_, n) =>
        ask(questions[n % questions.length] as Question),
      )
      const unavailable = (await Promise.all(asked)).filter((isServed) => !isServed).length
      return { unavailable, wallMs: rounded(performance.now() - startedMs, 0), calls: await take() }
    }

    const rows: { readonly row: Row; readonly bursts: readonly object[] }[] = []
    await burst(SIZES[0])
    for (const loops of detail.tables?.map(Number) ?? LOOPS) {
      const busy = Array.from({ length: loops }, () => endWithParent(spawn(process.execPath, LOOP)))
      for (const size of SIZES) {
        onProgress(`${count} bursts of ${size} beside ${loops} loops`)
        const seen: Awaited<ReturnType<typeof burst>>[] = []
        for (let round = 0; round < count && !shutdown.signal.aborted; round++)
          seen.push(await burst(size))
        const row = { loops, size, ...rowOf(seen) }
        onProgress(JSON.stringify(row))
        rows.push({ row, bursts: seen.map((one) => rowOf([one])) })
      }
      for (const end of busy) await end()
    }
    const sent = sumOf(rows, ({ row }) => row.size * count)
    return {
      figures: rows.map(({ row: { loops, size, failed } }) => {
        const title = `bursts of ${size} with a 503 beside ${loops} loops`
        const aim = { at: 'most', value: 0 } as const
        return figure(`failed-${size}-${loops}`, title, failed, 'count', { aim })
      }),
      checks: [{ what: 'wrong responses, without such a 503', seen: noneOf(sent) }],
      tables: [
        {
          title: `${count} bursts of each kind; milliseconds as median and maximum`,
          headings: HEADINGS,
          rows: rows.map(({ row }) => Object.values(row).map(String)),
        },
      ],
      details: { rows },
    }
  },
}

const HEADINGS =
  'loops,size,bursts with a 503,503,burst ms,calls,call by the clock,counted,deadlines passed'.split(
    ',',
  )

type Row = ReturnType<typeof rowOf> & { readonly loops: number; readonly size: number }

const spread = (values: readonly number[]) =>
  [percentile(values, 0.5), percentile(values, 1)].map((ms) => (ms ?? 0).toFixed(0)).join(', ')

type Burst = { readonly unavailable: number; readonly wallMs: number; readonly calls: Calls }
type Calls = readonly WatchedCall[]

function rowOf(seen: readonly Burst[]) {
  const calls = seen.flatMap((burst) => burst.calls)
  return {
    failed: seen.filter(({ unavailable }) => unavailable > 0).length,
    unavailable: sumOf(seen, ({ unavailable }) => unavailable),
    burstMs: spread(seen.map(({ wallMs }) => wallMs)),
    calls: calls.length,
    wallMs: spread(calls.map(([wallMs]) => wallMs)),
    countedMs: spread(calls.map(([, countedMs]) => countedMs)),
    expired: calls.filter(([, , isExpired]) => isExpired).length,
  }
}

/** Starts a gateway whose deadlines are watched. `take` returns the calls that have ended since its last use. */
async function start(context: ScenarioContext) {
  const take = async (from: string) => (await (await fetch(from)).json()) as readonly WatchedCall[]
  if (context.runtime === 'workerd') {
    const gateway = await startVariants(context, ['watched'])
    const { writers } = await mintTokens(gateway)
    const url = gateway.urlOf('watched')
    return { questions: orders('read', writers), url, take: () => take(url + WATCHED_PATH) }
  }
  const ground = await startGround(context)
  const tokens = await mintTokens(ground)
  const port = await freePort()
  const flags = ['--import', join(import.meta.dirname, '../node/watched.ts')]
  const watched = { ...oursLog, id: 'watched', variables: () => ({ WATCH_PORT: String(port) }) }
  const { url } = await startOnNode(context, watched, { ground, tokens, flags })
  const questions = orders('read', tokens.writers)
  return { questions, url, take: () => take(`http://${HOST}:${port}`) }
}
