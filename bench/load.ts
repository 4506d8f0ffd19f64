/** Sends requests as fast as they are answered, and looks at every answer. */
import autocannon from 'autocannon'
import { ORIGIN_BODY } from './backends.ts'
import type { RequestKind } from './options.ts'
import { createLatencyHistogram, type LatencyHistogram } from './statistics.ts'

/** How often autocannon looks whether it is time to stop. */
const SAMPLE_MS = 50
const REQUEST_TIMEOUT_SECONDS = 10
/** As Cloudflare tells the gateway where a request came from. */
const CLIENT_ADDRESS = '203.0.113.7'

const JSON_BODY = '{"item":"lamp","quantity":2,"position":[120.5,-40,3.25]}'

/** The one request that all layers get, below the path of the layer. */
export const TARGETS = {
  read: { method: 'GET', path: '/orders?limit=20', headers: {}, body: undefined },
  write: {
    method: 'POST',
    path: '/orders',
    headers: { 'content-type': 'application/json' },
    body: JSON_BODY,
  },
} as const satisfies Record<RequestKind, object>

/** A caller's headers, as a browser or a client library would send them. */
export function headersOf(token: string, request: RequestKind): Record<string, string> {
  return {
    authorization: `Bearer ${token}`,
    accept: 'application/json',
    'user-agent': 'portcullis-bench',
    'cf-connecting-ip': CLIENT_ADDRESS,
    ...TARGETS[request].headers,
  }
}

export interface Load {
  /** Of the layer: scheme, authority and first segment. */
  readonly url: string
  readonly request: RequestKind
  /** Dealt out to the connections; each goes through its share, over and over. */
  readonly tokens: readonly string[]
  readonly connections: number
  readonly seconds: number
}

export interface Driven {
  /** Answers that came, all of them right. */
  readonly requests: number
  readonly seconds: number
  readonly latencies: LatencyHistogram
}

/** Throws if a single answer is not 200 with the origin's body, or does not come. */
export async function drive(load: Load): Promise<Driven> {
  const { method, path, body } = TARGETS[load.request]
  const latencies = createLatencyHistogram()
  const shares = sharesOf(load.tokens, load.connections)
  let connection = 0
  let started = performance.now()
  const result = await new Promise<autocannon.Result>((resolve, reject) => {
    const instance = autocannon(
      {
        url: load.url + path,
        method,
        ...(body !== undefined && { body }),
        connections: load.connections,
        duration: load.seconds,
        timeout: REQUEST_TIMEOUT_SECONDS,
        sampleInt: SAMPLE_MS,
        expectBody: ORIGIN_BODY,
        setupClient(client) {
          const share = shares[connection++ % shares.length] ?? []
          client.setRequests(share.map((token) => ({ headers: headersOf(token, load.request) })))
        },
      },
      (error: Error | null, outcome) => (error ? reject(error) : resolve(outcome)),
    )
    instance.on('start', () => {
      started = performance.now()
    })
    instance.on('response', (_client, _status, _bytes, ms) => latencies.record(ms))
  })
  const seconds = (performance.now() - started) / 1000
  refuseWrong(result, latencies.count, load)
  return { requests: latencies.count, seconds, latencies }
}

function refuseWrong(result: autocannon.Result, answered: number, load: Load): void {
  const statuses = Object.entries(result.statusCodeStats ?? {})
  const wrong = [
    ...statuses
      .filter(([status]) => status !== '200')
      .map(([status, stats]) => `${stats.count} with status ${status}`),
    ...(result.mismatches > 0 ? [`${result.mismatches} with another body`] : []),
    ...(result.errors > 0 ? [`${result.errors} failed (${result.timeouts} in time-outs)`] : []),
  ]
  // What is still under way at the end is broken off; more than one a connection has got lost.
  const unanswered = result.requests.sent - answered
  if (unanswered > load.connections) wrong.push(`${unanswered} unanswered`)
  if (answered === 0) wrong.push('none answered')
  if (wrong.length > 0) throw new Error(`wrong answers from ${load.url}: ${wrong.join(', ')}`)
}

/** `tokens` in as many parts, or every part whole where there are too few to go round. */
function sharesOf(tokens: readonly string[], parts: number): readonly (readonly string[])[] {
  const size = Math.floor(tokens.length / parts)
  if (size === 0) return [tokens]
  return Array.from({ length: parts }, (_, part) => tokens.slice(part * size, (part + 1) * size))
}
