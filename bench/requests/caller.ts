/** Sends one request at a time over each of its open connections. */
import { Agent, request } from 'node:http'
import type { Question } from './ask.ts'

const TIMEOUT_MS = 10_000

export interface Reply {
  readonly status: number
  readonly body: string
  /** Time since the request was made, including waiting for a connection. */
  readonly ms: number
}

export interface Caller {
  /** Rejects if the response is missing or incomplete. */
  ask(url: string, question: Pick<Question, 'method' | 'path' | 'headers'>): Promise<Reply>
  /** Returns the number of connections opened so far, and of those closed since. */
  opened(): number
  closed(): number
  close(): void
}

/** Creates a caller with at most `connections` connections, opened on demand. */
export function createCaller(connections: number): Caller {
  const agent = new Agent({ keepAlive: true, maxSockets: connections, scheduling: 'fifo' })
  const known = new WeakSet<object>()
  let [opened, closed] = [0, 0]
  return {
    ask: (url, { method, path, headers }) =>
      new Promise((resolve, reject) => {
        const startedMs = performance.now()
        const outgoing = request(
          url + path,
          { method, agent, headers: { ...headers }, timeout: TIMEOUT_MS },
          (incoming) => {
            let body = ''
            incoming.setEncoding('utf8')
            incoming.on('data', (chunk: string) => {
              body += chunk
            })
            incoming.on('error', reject)
            incoming.on('end', () =>
              resolve({
                ...{ status: incoming.statusCode ?? 0, body },
                ms: performance.now() - startedMs,
              }),
            )
          },
        )
        outgoing.on('socket', (socket) => {
          if (known.has(socket)) return
          known.add(socket)
          opened++
          socket.once('close', () => closed++)
        })
        outgoing.on('timeout', () => outgoing.destroy(new Error('no answer in time')))
        outgoing.on('error', reject)
        outgoing.end()
      }),
    opened: () => opened,
    closed: () => closed,
    close: () => agent.destroy(),
  }
}
