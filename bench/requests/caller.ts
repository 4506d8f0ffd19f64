/** Asks one question at a time over each of its connections, which stay open. */
import { Agent, request } from 'node:http'
import type { Question } from './ask.ts'

const TIMEOUT_MS = 10_000

export interface Reply {
  readonly status: number
  readonly body: string
  /** From when it was asked, waiting for a connection included. */
  readonly ms: number
}

export interface Caller {
  /** Rejects where no answer comes, or not all of it. */
  ask(url: string, question: Pick<Question, 'method' | 'path' | 'headers'>): Promise<Reply>
  /** Connections that were opened so far, and that have been closed since. */
  opened(): number
  closed(): number
  close(): void
}

/** At most so many connections, opened when they are needed. */
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
