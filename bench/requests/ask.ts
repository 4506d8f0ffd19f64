/** A closed load whose every answer has a status and a body that are right, refusals included. */
import autocannon from 'autocannon'
import { createLatencyHistogram, type LatencyHistogram } from '../statistics.ts'

/** How often autocannon looks whether it is time to stop. */
const SAMPLE_MS = 50
const REQUEST_TIMEOUT_SECONDS = 10
const MICROS_PER_SECOND = 1_000_000
/** Of a wrong answer, in the error. */
const SHOWN_CHARACTERS = 200

/** A request, and what it is to be answered. */
export interface Question {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly status: number
  /** The whole body, or what stands in it. */
  readonly answer: string | { readonly holds: string }
}

export interface Asking {
  /** Scheme, authority and what comes before each path. */
  readonly url: string
  /** Dealt out to the connections; each goes through its share, over and over. */
  readonly questions: readonly Question[]
  readonly connections: number
  /** `once`: until each question has been asked once; `connections` must divide their number. */
  readonly until: { readonly seconds: number } | 'once'
  /** Whether 503 of {@link isShed} is an answer, too; counted apart. Default false. */
  readonly mayShed?: boolean
}

export interface Answers {
  /** Answers that were right, `shed` not among them. */
  readonly right: number
  /** 503 of {@link isShed}. */
  readonly shed: number
  readonly seconds: number
  /** Of right answers. */
  readonly latencies: LatencyHistogram
  /** Of right answers, milliseconds. */
  readonly meanMs: number
  /** Cores that sending and looking took. Close to 1: this process was the bottleneck. */
  readonly loadCores: number
}

/** Throws an `Error` of one line if a single answer is another one, or does not come. */
export async function ask(asking: Asking): Promise<Answers> {
  const { url, questions, connections, until } = asking
  const { origin, pathname } = new URL(url)
  const size = Math.max(1, Math.floor(questions.length / connections))
  const latencies = createLatencyHistogram()
  let [connection, wrong, shed, starved] = [0, 0, 0, 0]
  let firstWrong = ''
  let started = performance.now()
  let cpu = process.cpuUsage()

  function judge(question: Question, status: number, body: string): void {
    if (isRight(question, status, body)) return
    const isUnavailable = isShed(status, body)
    if (isUnavailable && asking.mayShed) shed++
    else if (isUnavailable) starved++
    else {
      firstWrong ||= `${status} ${body.slice(0, SHOWN_CHARACTERS)}`
      wrong++
    }
  }

  const result = await new Promise<autocannon.Result>((resolve, reject) => {
    const instance = autocannon(
      {
        url: origin,
        connections,
        timeout: REQUEST_TIMEOUT_SECONDS,
        sampleInt: SAMPLE_MS,
        ...(until === 'once' ? { amount: questions.length } : { duration: until.seconds }),
        setupClient(client) {
          const at = (connection++ * size) % questions.length
          client.setRequests(
            questions.slice(at, at + size).map((question) => ({
              method: question.method,
              path: pathname + question.path,
              headers: { ...question.headers },
              ...(question.body !== undefined && { body: question.body }),
              onResponse: (status: number, body: string) => judge(question, status, body),
            })),
          )
        },
      },
      (error: Error | null, outcome) => (error ? reject(error) : resolve(outcome)),
    )
    instance.on('start', () => {
      started = performance.now()
      cpu = process.cpuUsage()
    })
    // Comes right behind `onResponse`.
    let judgedShed = 0
    instance.on('response', (_client, _status, _bytes, ms) => {
      const isOne = shed > judgedShed
      judgedShed = shed
      if (isOne) return
      latencies.record(ms)
    })
  })
  const seconds = (performance.now() - started) / 1000
  const { user, system } = process.cpuUsage(cpu)
  const right = latencies.count
  const lost = result.requests.sent - right - shed
  const reasons = [
    ...(starved > 0 ? [`${starved} with status 503`] : []),
    ...(wrong > 0 ? [`${wrong} wrong, the first: ${firstWrong}`] : []),
    ...(result.errors > 0 ? [`${result.errors} failed (${result.timeouts} in time-outs)`] : []),
    // What is still under way at the end is broken off; more than one a connection has got lost.
    ...(lost > (until === 'once' ? 0 : connections) ? [`${lost} unanswered`] : []),
    ...(right === 0 ? ['none right'] : []),
  ]
  if (reasons.length > 0) throw new Error(`answers of ${pathname}: ${reasons.join('; ')}`)
  const loadCores = (user + system) / MICROS_PER_SECOND / seconds
  return { right, shed, seconds, latencies, meanMs: latencies.meanMs, loadCores }
}

/** Whether this is what the question is to be answered. */
export function isRight({ status, answer }: Question, got: number, body: string): boolean {
  if (got !== status) return false
  return typeof answer === 'string' ? body === answer : body.includes(answer.holds)
}

/** Whether the gateway says that too many requests wait, or that Redis was too late to tell. */
export const isShed = (status: number, body: string): boolean =>
  status === 503 && /"code":"(?:overloaded|dependency_unavailable)"/.test(body)
