/** A way to a test's Redis on which answers get lost: what was asked is done, and nobody is told. */
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import type { TestRedis } from '../harness/redis.ts'

export interface LossyRedis extends TestServer {
  /** The next `count` calls that hold `word` are carried out, and then hung up on. */
  lose(count: number, word: string): void
  /** Asks for each answer whether to lose it. Takes the place of what was said before. */
  loseWhere(decide: () => boolean): void
  /** How many answers are to be lost still. */
  left(): number
}

/** Does not lose answers at first. A script that Redis did not know was not carried out. */
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
