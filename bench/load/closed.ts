/** A closed load that checks status and body of every response, refusals included. */
import autocannon from 'autocannon'
import { createLatencies, type Latencies } from '../measure/statistics.ts'
import { isRight, isShed, type Question } from './questions.ts'

/** The interval at which autocannon checks whether to stop. */
const SAMPLE_MS = 50
const REQUEST_TIMEOUT_SECONDS = 10
const MICROS_PER_SECOND = 1_000_000
/** Characters of a wrong response in the error message. */
const SHOWN_CHARACTERS = 200

export interface ClosedLoad {
  /** Scheme, authority and path prefix. */
  readonly url: string
  /** Distributed over the connections. Each connection repeats its share. */
  readonly questions: readonly Question[]
  readonly connections: number
  /** `once`: each request is sent once; their number must be a multiple of `connections`. */
  readonly until: { readonly seconds: number } | { readonly requests: number } | 'once'
  /** Whether a 503 of {@link isShed} is allowed; counted separately. Default false. */
  readonly mayShed?: boolean
}

export interface Answers {
  /** Number of correct responses, without `shed`. */
  readonly right: number
  /** Number of 503 responses of {@link isShed}. */
  readonly shed: number
  readonly seconds: number
  readonly latencies: Latencies
  /** Cores used by this process. Close to 1: it was the bottleneck. */
  readonly loadCores: number
}

/** Sends the requests. Throws an `Error` of one line if a response is wrong or missing. */
export async function sendClosed(load: ClosedLoad): Promise<Answers> {
  const { url, questions, connections, until } = load
  const { origin, pathname } = new URL(url)
  const prefix = pathname === '/' ? '' : pathname
  const size = Math.max(1, Math.floor(questions.length / connections))
  const isCounted = until === 'once' || 'requests' in until
  const latencies = createLatencies()
  let [connection, wrong, shed, starved] = [0, 0, 0, 0]
  let firstWrong = ''
  let started = performance.now()
  let cpu = process.cpuUsage()
  let timer: NodeJS.Timeout | undefined

  function judge(question: Question, status: number, body: string): void {
    if (isRight(question, status, body)) return
    const isUnavailable = isShed(status, body)
    if (isUnavailable && load.mayShed) shed++
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
        ...(isCounted
          ? { amount: until === 'once' ? questions.length : until.requests }
          : { duration: until.seconds + REQUEST_TIMEOUT_SECONDS }),
        setupClient(client) {
          const at = (connection++ * size) % questions.length
          client.setRequests(
            questions.slice(at, at + size).map((question) => ({
              method: question.method,
              path: prefix + question.path,
              headers: { ...question.headers },
              ...(question.body !== undefined && { body: question.body }),
              onResponse: (status: number, body: string) => judge(question, status, body),
            })),
          )
        },
      },
      (error: Error | null, outcome) => (error ? reject(error) : resolve(outcome)),
    )
    // On a busy machine, a short load would end before its first response. It waits for one.
    let [isDue, hasResponse] = [false, false]
    const stopIfComplete = () => isDue && hasResponse && instance.stop()
    instance.on('start', () => {
      started = performance.now()
      cpu = process.cpuUsage()
      if (isCounted) return
      timer = setTimeout(() => {
        isDue = true
        stopIfComplete()
      }, until.seconds * 1000)
    })
    // Called directly after `onResponse`.
    let judgedShed = 0
    instance.on('response', (_client, _status, _bytes, ms) => {
      hasResponse = true
      stopIfComplete()
      const isOne = shed > judgedShed
      judgedShed = shed
      if (isOne) return
      latencies.record(ms)
    })
  })
  clearTimeout(timer)
  const seconds = (performance.now() - started) / 1000
  const { user, system } = process.cpuUsage(cpu)
  const right = latencies.count
  const lost = result.requests.sent - right - shed
  const reasons = [
    ...(starved > 0 ? [`${starved} with status 503`] : []),
    ...(wrong > 0 ? [`${wrong} wrong, the first: ${firstWrong}`] : []),
    ...(result.errors > 0 ? [`${result.errors} failed (${result.timeouts} timed out)`] : []),
    // Requests in progress at the end are aborted, one for each connection. Others were lost.
    ...(lost > (isCounted ? 0 : connections) ? [`${lost} unanswered`] : []),
    ...(right === 0 ? ['no correct response'] : []),
  ]
  if (reasons.length > 0) throw new Error(`wrong responses from ${url}: ${reasons.join('; ')}`)
  const loadCores = (user + system) / MICROS_PER_SECOND / seconds
  return { right, shed, seconds, latencies, loadCores }
}
