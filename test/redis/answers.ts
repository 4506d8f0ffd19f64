/** A REST endpoint with replies that a test defines. */
import type { RedisConnection } from '../../src/redis/connection.ts'
import { createRedisRest } from '../../src/redis/rest.ts'
import { startHttpServer } from '../harness/http-server.ts'

/**
 * Creates a client of an endpoint that answers every call with `body`; undefined: it never answers.
 */
export async function answering(
  body: string | undefined,
): Promise<{ readonly rest: RedisConnection; calls(): number; close(): Promise<void> }> {
  let calls = 0
  const server = await startHttpServer((request, response) => {
    calls += 1
    request.resume()
    if (body !== undefined) response.end(body)
  })
  const rest = createRedisRest({ url: server.url, token: 'token', timeoutMs: 200 })
  return { rest, calls: () => calls, close: () => server.close() }
}
