/** `portcullis serve` in a checkout of this package, whose policies import its sources. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { navigate } from '../harness/navigation.ts'
import { ROOT } from '../harness/process.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { startCli } from './command-line.ts'

const ISSUER = 'https://login.example.com'

let redis: TestRedis
beforeAll(async () => {
  redis = await startTestRedis()
})
afterAll(() => redis?.close())

test('a browser without a session is sent to the sign-in, and a stale one is named', async () => {
  const env = {
    REDIS_URL: redis.redisUrl,
    REDIS_TIMEOUT_MS: '5000',
    PUBLIC_URL: 'https://gateway.test',
    ORIGIN_URL: 'http://127.0.0.1:9',
    PORT: '0',
    ISSUERS: JSON.stringify([{ issuer: ISSUER, audience: 'orders' }]),
    ISSUER_CLIENTS: JSON.stringify([
      { issuer: ISSUER, id: 'gateway', secret: 'secret', signIn: { name: 'Example' } },
    ]),
  }
  const args = ['serve', '--config', 'examples/sign-in/policy.ts']
  const command = startCli(args, { cwd: ROOT, env })
  onTestFinished(async () => {
    command.kill('SIGTERM')
    await command.ended
  })
  const { stdout } = await command.printed(/ready on .+\n/)
  const [, url = ''] = /ready on (http:[^"]+)/.exec(stdout) ?? []
  expect(await navigate(`${url}/orders`)).toEqual({
    status: 303,
    location: expect.stringContaining('/oauth/sign-in'),
  })
  const stale = await fetch(`${url}/orders`, {
    headers: { cookie: `__Host-portcullis-session=${'a'.repeat(43)}` },
  })
  expect([stale.status, (await stale.json()) as unknown]).toEqual([
    401,
    expect.objectContaining({ code: 'sign_in_required' }),
  ])
})
