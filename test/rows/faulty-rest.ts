/** A REST endpoint over a real Redis that answers as a test tells it to. */
import type { ServerResponse } from 'node:http'
import { BEHIND_ANSWERS } from '../harness/control.ts'
import { startHttpServer } from '../harness/http-server.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'

/** What becomes of one call, in the place of an answer from Redis. */
export type Fault = (response: ServerResponse) => unknown

export interface FaultyRest {
  readonly url: string
  readonly redis: TestRedis
  /** Bodies of the pipelines that requests asked for since `forget`; not what is written behind them. */
  readonly calls: readonly string[]
  /** What a sound endpoint answered last to such a call. */
  lastReply(): Buffer
  forget(): void
  /** What becomes of every call from now on; undefined: what a sound endpoint does. */
  setFault(fault: Fault | undefined): void
  /** Answers of a sound endpoint wait for this, milliseconds. */
  setDelay(ms: number): void
  close(): Promise<void>
}

/** Answers with `body`, whatever was asked. */
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
