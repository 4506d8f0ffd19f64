/** A gateway process on Node that has no file descriptor left, and has some again. */
import { Agent, get } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { NODE, startGateway, type TestGateway } from '../../harness/gateway.ts'
import { AUDIENCE } from '../../harness/issuer.ts'
import { freePort, type Running, run } from '../../harness/process.ts'

let parts: TestGateway
let running: Running
let port: number
/** One connection, which the test keeps. */
const agent = new Agent({ keepAlive: true, maxSockets: 1 })

beforeAll(async () => {
  // The origin closes each connection, so that each request needs another descriptor.
  parts = await startGateway({
    audience: [AUDIENCE],
    origin: (request, response) =>
      void request.resume().on('end', () => response.setHeader('connection', 'close').end('[]')),
  })
  port = await freePort()
  const {
    UPSTASH_REDIS_REST_URL: _,
    UPSTASH_REDIS_REST_TOKEN: __,
    ...environment
  } = parts.environment
  running = await run(
    ['/bin/sh', '-c', 'ulimit -n 512 && exec "$0" "$@"', NODE, 'test/runtimes/node/process.ts'],
    {
      ...environment,
      REDIS_URL: parts.redis.redisUrl,
      PORT: String(port),
      NODE_OPTIONS: '--import=./test/runtimes/node/hold-descriptors.ts',
    },
    /ready on \S+\n/,
  )
})
afterAll(async () => {
  agent.destroy()
  await running?.stop()
  await parts?.close()
})

async function outcome(token: string, connection: Agent | false = agent) {
  const headers = { authorization: `Bearer ${token}` }
  return new Promise<
    readonly [status: number | undefined, retryAfter: string | undefined, text: string]
  >((resolve, reject) =>
    get({ port, path: '/orders', headers, agent: connection }, (response) => {
      let text = ''
      response.on('data', (chunk) => {
        text += chunk
      })
      response.on('end', () =>
        resolve([response.statusCode, response.headers['retry-after'], text]),
      )
    }).on('error', reject),
  )
}

async function toggle(printed: string): Promise<void> {
  running.child.kill('SIGUSR2')
  await expect.poll(running.output).toContain(printed)
}

test('without a free descriptor requests are 503 and logged, and succeed when one is free again', async () => {
  const token = await parts.token()
  expect((await outcome(token))[0]).toBe(200)
  const reached = parts.requests.length
  await toggle('holds ')
  // More than the failures that open the circuit breaker of an origin.
  for (let count = 0; count < 8; count += 1) {
    const [status, retryAfter, text] = await outcome(token)
    expect([status, JSON.parse(text).code, retryAfter]).toEqual([503, 'overloaded', '1'])
  }
  expect(parts.requests.length).toBe(reached)
  await expect.poll(running.output).toContain('system: no file descriptor is free (EMFILE)')
  await toggle('holds no descriptor')
  expect((await outcome(token))[0]).toBe(200)
  expect((await outcome(token, false))[0]).toBe(200)
  await expect.poll(running.output).toContain('system: file descriptors are free again')
  expect(running.child.exitCode).toBeNull()
})
