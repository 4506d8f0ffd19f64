/** The stream of the overview: its figures, as often as they are cheap to read. */
import { Denied } from '../../errors.ts'
import { eventStream } from './event-stream.ts'
import { CONSOLE_PATH, OVERVIEW_STREAM_PATH, shown } from './layout.ts'
import { figures, readFigures, sumOf } from './overview.ts'
import type { Desk, PageDefinition } from './page.ts'
import { withPeriod } from './period.ts'

const PAUSE_MS = 5_000
/** The stream reads at most a twentieth of its time. */
const PAUSE_PER_MS = 20
/** Isolates report every ten seconds, so that a shorter time has no rate. */
const RATE_MS = 60_000

export const OVERVIEW_STREAM: PageDefinition = {
  path: OVERVIEW_STREAM_PATH.slice(CONSOLE_PATH.length),
  id: 'overviewStream',
  show: streamOf,
}

/** Sends the figures as markup: what the page has at the same place. Throws `Denied` if the visitor may read none. */
async function streamOf(desk: Desk): Promise<Response> {
  const query = withPeriod(desk.query)
  const rate = createRate()
  async function next(): Promise<string | undefined> {
    const nowMs = Date.now()
    const read = await readFigures(desk, query, nowMs)
    if (read.summary === undefined && read.status === undefined) return undefined
    const perSecond = read.status && rate(nowMs, sumOf(read.status.requests))
    const markup = shown(String(await figures(read, query, nowMs, perSecond)))
    return `data: ${JSON.stringify(markup)}\n\n`
  }
  let first = await next()
  if (first === undefined)
    throw new Denied({ code: 'permission_missing', permission: 'portcullis:audit:read' })
  return eventStream(desk, {
    async poll() {
      const text = first ?? (await next())
      first = undefined
      return text
    },
    pauseMs: (tookMs) => Math.max(PAUSE_MS, tookMs * PAUSE_PER_MS),
  })
}

/** Returns a function that computes the rate of a counter over the last minute. Undefined: it has been read once. */
export function createRate(): (nowMs: number, count: number) => number | undefined {
  let samples: readonly (readonly [ms: number, count: number])[] = []
  return function rate(nowMs, count) {
    const last = samples.at(-1)
    // Somebody has deleted the counters.
    if (last !== undefined && count < last[1]) samples = []
    samples = [...samples.filter(([ms]) => ms >= nowMs - RATE_MS), [nowMs, count]]
    const [fromMs, from] = samples[0] ?? [nowMs, count]
    return nowMs === fromMs ? undefined : ((count - from) * 1_000) / (nowMs - fromMs)
  }
}
