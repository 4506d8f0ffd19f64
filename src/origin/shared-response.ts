/** Which requests are identical, which responses may be shared, and responses as plain data. */
import type { OriginRequest } from './origin.ts'

/** Maximum size of a shared response, in bytes as sent. */
export const MAX_SHARED_BYTES = 262_144
/** Maximum time between the headers of a shared response and the end of its body. */
export const READ_TIMEOUT_MS = 2_000

type Bytes = Uint8Array<ArrayBuffer>

/** Forwarded headers that may differ between identical requests, in lower case. */
const OF_THE_REQUEST: ReadonlySet<string> = new Set([
  'x-request-id',
  'traceparent',
  'tracestate',
  // Contains the same facts as the other `X-Auth-*` headers, and a time.
  'x-auth-assertion',
])

export const mayShare = ({ incoming, body, headers }: OriginRequest): boolean =>
  incoming.method === 'GET' && body === null && !headers.has('upgrade')

/** Returns a key that is equal for identical requests of the same caller. */
export function createKey({ incoming, headers, timeoutMs, route }: OriginRequest): string {
  // Two routes may have the same URL and different origins.
  let key = `${timeoutMs} ${route} ${incoming.url}`
  // Names and values contain no line break, and equal names are in the same order.
  for (const [name, value] of headers) {
    if (!OF_THE_REQUEST.has(name)) key += `\n${name}:${value}`
  }
  return key
}

/** Media types of endless responses. */
const ENDLESS = /^(?:text\/event-stream|multipart\/x-mixed-replace)\b/i
/** RFC 9111 sections 5.2.2.5 and 4.1. */
const NO_STORE = /(?:^|,)\s*no-store\s*(?:,|$)/i
const ANY_VARIANT = /(?:^|,)\s*\*\s*(?:,|$)/

/** Reports whether concurrent identical requests may share a response. Errors are shared too. */
export function isShareable({ status, headers }: Response): boolean {
  return (
    status !== 101 &&
    !headers.has('Set-Cookie') &&
    !NO_STORE.test(headers.get('Cache-Control') ?? '') &&
    !ANY_VARIANT.test(headers.get('Vary') ?? '') &&
    !ENDLESS.test(headers.get('Content-Type') ?? '') &&
    Number(headers.get('Content-Length') ?? 0) <= MAX_SHARED_BYTES
  )
}

export const splitResponse = ({ status, statusText, headers }: Response, body: Bytes | null) => ({
  status,
  statusText,
  headers: [...headers],
  body,
})

export type SharedResponse = Readonly<ReturnType<typeof splitResponse>>

export function createResponse({ status, statusText, headers, body }: SharedResponse): Response {
  const fields = new Headers()
  for (const [name, value] of headers) fields.append(name, value)
  // The bytes already have the origin's encoding. Otherwise the platform would encode them again.
  return new Response(body, { status, statusText, headers: fields, encodeBody: 'manual' })
}

/** Returns the bytes of a body. If it is too large or slow: cancels it, and returns undefined. */
export async function readBody(body: ReadableStream<Uint8Array>): Promise<Bytes | undefined> {
  const reader = body.getReader()
  const chunks: Uint8Array[] = []
  let bytes = 0
  let timer!: ReturnType<typeof setTimeout>
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), READ_TIMEOUT_MS)
  })
  try {
    for (;;) {
      const chunk = await Promise.race([reader.read(), late])
      if (chunk?.done) return joined(chunks, bytes)
      bytes += chunk?.value.byteLength ?? 0
      if (chunk === undefined || bytes > MAX_SHARED_BYTES) {
        reader.cancel().catch(() => {})
        return undefined
      }
      chunks.push(chunk.value)
    }
  } finally {
    clearTimeout(timer)
  }
}

function joined(chunks: readonly Uint8Array[], bytes: number): Bytes {
  const whole = new Uint8Array(bytes)
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.byteLength
  }
  return whole
}
