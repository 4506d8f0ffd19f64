/** Sends requests at a fixed rate over many connections in turn. */
import { monotonicMs, pace } from '../pacer.ts'
import { createLatencyHistogram, type LatencyHistogram } from '../statistics.ts'
import { isRight, isShed, type Question } from './ask.ts'
import { type Caller, createCaller } from './caller.ts'

/**
 * Maximum number of concurrent requests over all connections. More are not sent, and count as not
 * ok.
 */
const MAX_OUTSTANDING = 4_000

export interface KeepAliveOffer {
  readonly ratePerSecond: number
  readonly seconds: number
}

export interface KeepAliveAnswers {
  readonly offered: number
  /** Number of correct responses. */
  readonly right: number
  /** 503 responses: too many requests waited, or Redis was too slow. */
  readonly shed: number
  /** Requests with a closed connection, or without a response in time. */
  readonly failed: number
  /** Requests that were not sent, because too many were in progress. */
  readonly notSent: number
  /** Latencies of correct responses, from the time when the request was due. */
  readonly latencies: LatencyHistogram
}

export interface KeepAliveLoad {
  /** Offers the load. Throws an `Error` of one line for any other response. */
  offer(how: KeepAliveOffer): Promise<KeepAliveAnswers>
  /** Returns the number of connections opened so far. */
  opened(): number
  /** Returns the number of open connections. */
  open(): number
  close(): void
}

/**
 * Creates the load. The first requests open the connections; each request uses the next connection.
 */
export function createKeepAliveLoad(
  url: string,
  questions: readonly Question[],
  connections: number,
): KeepAliveLoad {
  const callers: readonly Caller[] = Array.from({ length: connections }, () => createCaller(1))
  const sum = (of: (caller: Caller) => number) =>
    callers.reduce((total, caller) => total + of(caller), 0)
  let next = 0

  return {
    async offer(how) {
      const latencies = createLatencyHistogram()
      let [offered, shed, failed, notSent] = [0, 0, 0, 0]
      let wrong: string | undefined
      const underWay = new Set<Promise<void>>()

      async function send(dueMs: number): Promise<void> {
        const caller = callers[next % connections] as Caller
        const question = questions[next++ % questions.length] as Question
        try {
          const { status, body } = await caller.ask(url, question)
          if (isRight(question, status, body)) latencies.record(monotonicMs() - dueMs)
          else if (isShed(status, body)) shed++
          else wrong ??= `${status} ${body.slice(0, 200)}`
        } catch {
          failed++
        }
      }

      await pace({ ...how, spacing: 'even' }, (due) => {
        for (const dueMs of due) {
          offered++
          if (underWay.size >= MAX_OUTSTANDING) {
            notSent++
            continue
          }
          const sent = send(dueMs).finally(() => underWay.delete(sent))
          underWay.add(sent)
        }
      })
      await Promise.all(underWay)
      if (wrong !== undefined) throw new Error(`a wrong answer: ${wrong}`)
      return { offered, right: latencies.count, shed, failed, notSent, latencies }
    },
    opened: () => sum((caller) => caller.opened()),
    open: () => sum((caller) => caller.opened() - caller.closed()),
    close() {
      for (const caller of callers) caller.close()
    },
  }
}
