/**
 * A proxy to a test's Redis that loses replies: the commands run, and the caller gets no answer.
 */
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import type { TestRedis } from '../harness/redis.ts'

export interface LossyRedis extends TestServer {
  /** Loses the replies of the next `count` calls that contain `word`. */
  lose(count: number, word: string): void
  /** Calls `decide` for each reply to decide whether to lose it. Replaces the previous rule. */
  loseWhere(decide: () => boolean): void
  /** Returns how many replies are still to be lost. */
  left(): number
}

/** Loses no replies at first. A NOSCRIPT reply is never lost, because nothing ran. */
export async function startLossyRedis(redis: TestRedis): Promise<LossyRedis> {
  let left = 0
  let isLost = (_: Buffer) => false
  const proxy = await startHttpServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    const answer = await fetch(new URL(request.url ?? '/', redis.url), {
      method: 'POST',
      headers: {
        authorization: request.headers.authorization ?? '',
        'content-type': 'application/json',
      },
      body,
    })
    const text = await answer.text()
    if (!text.includes('NOSCRIPT') && isLost(body)) return void response.destroy()
    response.writeHead(answer.status, { 'content-type': 'application/json' })
    response.end(text)
  })
  return {
    ...proxy,
    lose(count, word) {
      left = count
      isLost = (body) => left > 0 && body.includes(word) && left-- > 0
    },
    loseWhere(decide) {
      left = 0
      isLost = decide
    },
    left: () => left,
  }
}
