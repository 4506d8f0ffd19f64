/** A fixed rate of requests over many connections, each of which gets its turn. */
import { monotonicMs, pace } from '../pacer.ts'
import { createLatencyHistogram, type LatencyHistogram } from '../statistics.ts'
import { isRight, isShed, type Question } from './ask.ts'
import { type Caller, createCaller } from './caller.ts'

/** Requests under way at once, over all connections; more are not sent, and not ok. */
const MAX_OUTSTANDING = 4_000

export interface KeepAliveOffer {
  readonly ratePerSecond: number
  readonly seconds: number
}

export interface KeepAliveAnswers {
  readonly offered: number
  /** Right answers. */
  readonly right: number
  /** 503: too many waited, or Redis was too late. */
  readonly shed: number
  /** Requests whose connection ended, or that nothing answered in time. */
  readonly failed: number
  /** Not sent, because too many were under way. */
  readonly notSent: number
  /** Of right answers, from the moment when the request was due. */
  readonly latencies: LatencyHistogram
}

export interface KeepAliveLoad {
  /** Throws an `Error` of one line for any other answer. */
  offer(how: KeepAliveOffer): Promise<KeepAliveAnswers>
  /** Connections that were opened so far. */
  opened(): number
  /** Connections that are open. */
  open(): number
  close(): void
}

/** Connections are opened by the first requests; the next request goes to the next connection. */
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
