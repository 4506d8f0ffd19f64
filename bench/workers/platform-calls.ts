/** A proxy that makes the pipeline's calls to the platform, without its decisions. */
import type { QueueBinding } from '../../src/runtimes/cloudflare/index.ts'
import { pathStart } from './routing.ts'

const TIMEOUT_MS = 15_000
const BATCH_EVENTS = 100

/** Headers of the same names and lengths as those that the pipeline sends to an origin. */
const ADDED = {
  'x-request-id': '01a20163-f463-7430-a6de-eb309658b2fc',
  traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
  'x-forwarded-for': '203.0.113.7',
  'x-forwarded-proto': 'http',
  'x-auth-subject': 'caller-0',
  'x-auth-issuer': 'https://gateway.bench.test',
  'x-auth-client': 'bench',
  'x-auth-roles': 'writer',
  'x-auth-assertion': 'a'.repeat(560),
}
const REMOVED: ReadonlySet<string> = new Set(['authorization', 'host', 'cf-connecting-ip'])
const EVENT = 'e'.repeat(820)
/** A call to Redis of the same length as that of an admission, with a reply of the same length. */
const CALL = [
  'EVAL',
  'return {0,0,1000000000,999999999,60000}',
  ...[7, ...Array.from({ length: 7 }, () => 'k'.repeat(56))],
  ...Array.from({ length: 12 }, () => 1_000_000_000),
]

interface PlatformEnv {
  readonly ORIGIN_URL: string
  readonly AUDIT_QUEUE?: QueueBinding
  readonly UPSTASH_REDIS_REST_URL: string
  readonly UPSTASH_REDIS_REST_TOKEN: string
}

/**
 * Creates the proxy. It copies the headers and adds its own, calls the origin with a deadline,
 * creates a response, and sends an event for each request to the queue, in batches of a hundred. With
 * `redis` it also makes a call over REST before. The difference to the CPU of the pipeline is the cost
 * of the pipeline's own code.
 */
export function platformCalls({ redis = false } = {}) {
  let events: string[] = []

  async function forward(request: Request, env: PlatformEnv): Promise<Response> {
    const headers: Record<string, string> = { ...ADDED }
    request.headers.forEach((value, name) => {
      if (!REMOVED.has(name)) headers[name] = value
    })
    if (redis) await callRedis(env)
    const abort = new AbortController()
    const timer = setTimeout(() => abort.abort(), TIMEOUT_MS)
    const { url, method } = request
    const target = env.ORIGIN_URL + url.slice(pathStart(url))
    try {
      const answer = await fetch(target, {
        method,
        headers,
        signal: abort.signal,
        redirect: 'manual',
        cache: 'no-store',
        encodeResponseBody: 'manual',
      })
      return ownAnswer(answer)
    } finally {
      clearTimeout(timer)
    }
  }

  return function handle(request: Request, env: PlatformEnv, context: ExecutionContext) {
    const answered = forward(request, env)
    context.waitUntil(answered)
    events.push(EVENT)
    if (events.length === BATCH_EVENTS && env.AUDIT_QUEUE !== undefined) {
      const messages = events.map((body) => ({ body, contentType: 'text' as const }))
      events = []
      context.waitUntil(env.AUDIT_QUEUE.sendBatch(messages))
    }
    return answered
  }
}

/** As the client of Upstash: with a deadline, and with the token that reads its own writes. */
async function callRedis({
  UPSTASH_REDIS_REST_URL: url,
  UPSTASH_REDIS_REST_TOKEN: token,
}: PlatformEnv): Promise<void> {
  const abort = new AbortController()
  const timer = setTimeout(() => abort.abort(), TIMEOUT_MS)
  try {
    const answer = await fetch(`${url}/pipeline`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${token}`,
        'upstash-sync-token': '',
      },
      body: JSON.stringify([CALL]),
      signal: abort.signal,
    })
    const text = await answer.text()
    answer.headers.get('upstash-sync-token')
    const [reply] = JSON.parse(text) as readonly { readonly error?: string }[]
    if (reply?.error !== undefined) throw new Error(reply.error)
  } finally {
    clearTimeout(timer)
  }
}

function ownAnswer(answer: Response): Response {
  const response = new Response(answer.body, answer)
  const { headers } = response
  const names = new Set(headers.keys())
  headers.set('X-Content-Type-Options', 'nosniff')
  headers.set('Cache-Control', 'private')
  if (!names.has('vary')) headers.append('Vary', 'Authorization')
  headers.set('RateLimit-Policy', '"standard";q=1000000000;w=60')
  headers.set('RateLimit', '"standard";r=999999999;t=60')
  headers.set('X-Request-Id', ADDED['x-request-id'])
  return response
}
