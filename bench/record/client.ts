/**
 * Sends a request once and returns the outcome. Never retries: that would be two requests with one
 * number.
 */
import { Agent, request } from 'node:http'

/** Longer than every timeout of the gateway, and than its pauses. */
const TIMEOUT_MS = 8_000
/** Shorter than workerd's idle timeout for connections of 5 s. */
const IDLE_MS = 2_000

export interface Outgoing {
  readonly url: string
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

export interface Answer {
  /** 0: no response, or an incomplete one. */
  readonly status: number
  /** Code of a problem document; empty otherwise. */
  readonly code: string
}

const NO_ANSWER: Answer = { status: 0, code: '' }

export interface Client {
  send(outgoing: Outgoing): Promise<Answer>
  close(): void
}

export function createClient(): Client {
  const agent = new Agent({ keepAlive: true, scheduling: 'lifo', timeout: IDLE_MS })
  return {
    send: ({ url, method, headers, body }) =>
      new Promise((resolve) => {
        const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
        const outgoing = request(
          url,
          { agent, method, headers: { ...headers, ...length }, timeout: TIMEOUT_MS },
          (incoming) => {
            let text = ''
            const status = incoming.statusCode ?? 0
            incoming.setEncoding('utf8')
            incoming.on('data', (chunk: string) => {
              text += chunk
            })
            incoming.on('end', () => resolve({ status, code: status < 400 ? '' : codeOf(text) }))
            incoming.on('error', () => resolve(NO_ANSWER))
          },
        )
        outgoing.on('timeout', () => outgoing.destroy())
        outgoing.on('error', () => resolve(NO_ANSWER))
        outgoing.end(body)
      }),
    close: () => agent.destroy(),
  }
}

function codeOf(text: string): string {
  try {
    const { code } = Object(JSON.parse(text)) as Record<string, unknown>
    return typeof code === 'string' ? code : ''
  } catch {
    return ''
  }
}
