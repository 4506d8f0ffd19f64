/** Sends requests as fast as they are answered, and checks every response. */
import autocannon from 'autocannon'
import { createLatencyHistogram, type LatencyHistogram } from './statistics.ts'

/** The interval at which autocannon checks whether to stop. */
const SAMPLE_MS = 50
const REQUEST_TIMEOUT_SECONDS = 10
const MICROS_PER_SECOND = 1_000_000

export interface LoadRequest {
  readonly headers: Record<string, string>
  readonly body?: string
  /**
   * Reports whether a response with status 200 and this body is correct. Slower than
   * `Load.expectBody`.
   */
  readonly isRight?: (body: string) => boolean
}

export interface Load {
  readonly url: string
  readonly method: 'GET' | 'POST'
  /** Distributed over the connections. Each connection repeats its share. */
  readonly requests: readonly LoadRequest[]
  /** The only correct body, if there is one. */
  readonly expectBody?: string
  readonly connections: number
  readonly seconds: number
}

export interface Driven {
  /** Number of responses, all correct. */
  readonly requests: number
  readonly seconds: number
  readonly latencies: LatencyHistogram
  /**
   * Cores used to send requests and check responses. Close to 1: this process was the bottleneck.
   */
  readonly loadCores: number
}

/** Sends the load. Throws if a response is missing, not 200, or has a wrong body. */
export async function drive(load: Load): Promise<Driven> {
  const latencies = createLatencyHistogram()
  const shares = sharesOf(load.requests, load.connections)
  let connection = 0
  let wrongBodies = 0
  let started = performance.now()
  let cpu = process.cpuUsage()
  const result = await new Promise<autocannon.Result>((resolve, reject) => {
    const instance = autocannon(
      {
        url: load.url,
        method: load.method,
        connections: load.connections,
        duration: load.seconds,
        timeout: REQUEST_TIMEOUT_SECONDS,
        sampleInt: SAMPLE_MS,
        ...(load.expectBody !== undefined && { expectBody: load.expectBody }),
        setupClient(client) {
          const share = shares[connection++ % shares.length] ?? []
          client.setRequests(share.map(requestOf))
        },
      },
      (error: Error | null, outcome) => (error ? reject(error) : resolve(outcome)),
    )
    instance.on('start', () => {
      started = performance.now()
      cpu = process.cpuUsage()
    })
    instance.on('response', (_client, _status, _bytes, ms) => latencies.record(ms))
  })
  const seconds = (performance.now() - started) / 1000
  const { user, system } = process.cpuUsage(cpu)
  refuseWrong(result, { load, answered: latencies.count, wrongBodies })
  const loadCores = (user + system) / MICROS_PER_SECOND / seconds
  return { requests: latencies.count, seconds, latencies, loadCores }

  function requestOf({ headers, body, isRight }: LoadRequest): autocannon.Request {
    return {
      headers,
      ...(body !== undefined && { body }),
      ...(isRight !== undefined && {
        onResponse(status: number, answer: string) {
          if (status === 200 && !isRight(answer)) wrongBodies++
        },
      }),
    }
  }
}

function refuseWrong(
  result: autocannon.Result,
  { load, answered, wrongBodies }: { load: Load; answered: number; wrongBodies: number },
): void {
  const statuses = Object.entries(result.statusCodeStats ?? {})
  const bodies = wrongBodies + result.mismatches
  const wrong = [
    ...statuses
      .filter(([status]) => status !== '200')
      .map(([status, stats]) => `${stats.count} with status ${status}`),
    ...(bodies > 0 ? [`${bodies} with another body`] : []),
    ...(result.errors > 0 ? [`${result.errors} failed (${result.timeouts} in time-outs)`] : []),
  ]
  // Requests in progress at the end are aborted. More than one per connection means that some were
  // lost.
  const unanswered = result.requests.sent - answered
  if (unanswered > load.connections) wrong.push(`${unanswered} unanswered`)
  if (answered === 0) wrong.push('none answered')
  if (wrong.length > 0) throw new Error(`wrong answers from ${load.url}: ${wrong.join(', ')}`)
}

/** Returns `all` in `parts` parts, or each part complete if there are too few items. */
function sharesOf<Item>(all: readonly Item[], parts: number): readonly (readonly Item[])[] {
  const size = Math.floor(all.length / parts)
  if (size === 0) return [all]
  return Array.from({ length: parts }, (_, part) => all.slice(part * size, (part + 1) * size))
}
