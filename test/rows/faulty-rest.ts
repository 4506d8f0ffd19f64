/** A REST endpoint over a real Redis with faults that a test sets. */
import type { ServerResponse } from 'node:http'
import { BEHIND_ANSWERS } from '../harness/control.ts'
import { startHttpServer } from '../harness/http-server.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'

/** Replaces the reply of Redis for one call. */
export type Fault = (response: ServerResponse) => unknown

export interface FaultyRest {
  readonly url: string
  readonly redis: TestRedis
  /**
   * Bodies of the request path's pipelines since `forget`; without calls that run after the
   * response.
   */
  readonly calls: readonly string[]
  /** The last reply of Redis to a call of the request path. */
  lastReply(): Buffer
  forget(): void
  /** Sets the fault of every later call; undefined: the endpoint answers correctly. */
  setFault(fault: Fault | undefined): void
  /** Delays correct replies by `ms` milliseconds. */
  setDelay(ms: number): void
  close(): Promise<void>
}

/** Answers every call with `body`. */
export const saying =
  (body: string | Buffer, status = 200): Fault =>
  (response) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(body)

export const hangingUp: Fault = (response) => response.destroy()
export const hanging: Fault = () => undefined

export async function startFaultyRest(): Promise<FaultyRest> {
  const redis = await startTestRedis()
  const calls: string[] = []
  let fault: Fault | undefined
  let delayMs = 0
  let lastReply = Buffer.alloc(0)
  const server = await startHttpServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    const isOfRequest = !BEHIND_ANSWERS.test(body.toString())
    if (isOfRequest) calls.push(body.toString())
    if (fault !== undefined) return void fault(response)
    if (delayMs > 0) await new Promise((done) => setTimeout(done, delayMs))
    try {
      const answer = await fetch(new URL(request.url ?? '/', redis.url), {
        method: request.method ?? 'POST',
        headers: {
          authorization: request.headers.authorization ?? '',
          'content-type': 'application/json',
        },
        ...(body.length > 0 && { body }),
      })
      response.writeHead(answer.status, { 'content-type': 'application/json' })
      const reply = Buffer.from(await answer.arrayBuffer())
      if (isOfRequest) lastReply = reply
      response.end(reply)
    } catch {
      response.destroy()
    }
  })
  return {
    url: server.url,
    redis,
    calls,
    lastReply: () => lastReply,
    forget() {
      calls.length = 0
    },
    setFault(next) {
      fault = next
    },
    setDelay(ms) {
      delayMs = ms
    },
    async close() {
      await server.close()
      await redis.close()
    },
  }
}
