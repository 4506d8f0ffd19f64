/** The client's address in a gateway outside of Cloudflare Workers. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { composeServices, definePolicy, type GatewayEnv, WORKERS } from '../../src/index.ts'
import { startGateway, type TestGateway } from '../harness/gateway.ts'

const policy = definePolicy({
  roles: {},
  limits: { open: { limit: 1, windowSeconds: 60, by: 'address', onUnavailable: 'deny' } },
  routes: [{ method: 'GET', path: '/open', anonymous: true, limits: ['open'] }],
})

let gateway: TestGateway

beforeAll(async () => {
  gateway = await startGateway({ policy })
})

afterAll(() => gateway?.close())

test('its source must be stated: without a runtime, the gateway does not start', () => {
  const env = gateway.environment as unknown as GatewayEnv
  expect(() => composeServices(env, policy)).toThrow(
    'outside of Cloudflare Workers, pass a runtime as the third argument',
  )
  expect(() => composeServices(env, policy, WORKERS)).not.toThrow()
})

test('a client cannot choose it with CF-Connecting-IP', async () => {
  const addressOf = () => '192.0.2.7'
  const app = gateway.isolate(policy, {}, { ports: { addressOf } })
  const answers = []
  for (const forged of ['198.51.100.1', '198.51.100.2'])
    answers.push(await app.request('/open', { headers: { 'CF-Connecting-IP': forged } }))
  expect(answers.map(({ status }) => status)).toEqual([200, 429])
  expect(gateway.requests.map(({ headers }) => headers['x-forwarded-for'])).toEqual(['192.0.2.7'])
  expect(gateway.events.map(({ address }) => address)).toEqual(['192.0.2.7', '192.0.2.7'])
})
