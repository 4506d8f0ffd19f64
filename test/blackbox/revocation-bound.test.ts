/**
 * Two gateways in real workerd with a staleness bound in their policy, and revocations by
 * operators.
 */
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { type FaultProxy, startFaultProxy } from '../../dev/fault-proxy/proxy.ts'
import { newCallerOf, outcomeOf } from '../access/admission/revocable.ts'
import { type Caller, countLate, type Outcome } from '../access/admission/revocation-bound.ts'
import { type FurtherGateway, startFurther } from '../harness/further-gateway.ts'
import { NEVER } from '../harness/never.ts'
import { postAs } from './oauth-clients.ts'

const stack = inject('stack')
/** The bound of the policy. */
const BOUND_MS = 500
/** Three for each fault of Redis. */
const REVOCATIONS = 9
const AT_ONCE = 3

let proxy: FaultProxy
const gateways: FurtherGateway[] = []

async function start(): Promise<void> {
  const vars = {
    UPSTASH_REDIS_REST_URL: proxy.url,
    // The default deadline.
    REDIS_TIMEOUT_MS: '',
  }
  gateways.push(await startFurther(stack, { policy: 'test/harness/bounded-policy.ts', vars }))
}

beforeAll(async () => {
  const { hostname: host, port } = new URL(stack.rest.url)
  proxy = await startFaultProxy({ target: { host, port: Number(port) } })
  await Promise.all([start(), start()])
})
afterAll(async () => {
  await Promise.all(gateways.map((gateway) => gateway.stop()))
  await proxy?.close()
})

async function outcomeAt(url: string, { token }: Caller): Promise<Outcome> {
  const response = await fetch(`${url}/orders`, { headers: { authorization: `Bearer ${token}` } })
  await response.arrayBuffer()
  return outcomeOf(response.status)
}

/** Through the operators' API of a third gateway with a Redis without faults. */
async function revoke({ principal: { subject } }: Caller): Promise<void> {
  const [gateway] = stack.gateways
  const grant = { grant_type: 'client_credentials' }
  const granted = await postAs(stack.operator, `${gateway}/oauth/token`, grant)
  const { access_token } = (await granted.json()) as { access_token: string }
  const headers = { Authorization: `Bearer ${access_token}`, 'Content-Type': 'application/json' }
  const body = JSON.stringify({ kind: 'subject', value: subject })
  const url = `${gateway}/-/admin/revocations`
  const response = await fetch(url, { method: 'POST', headers, body })
  await response.arrayBuffer()
  expect(response.status).toBe(201)
}

test('after a revocation no request is served later than the bound, with Redis healthy, slow or hung', async () => {
  const counts = await countLate({
    boundMs: BOUND_MS,
    revocations: REVOCATIONS,
    atOnce: AT_ONCE,
    proxy,
    revoke,
    newCaller: () => newCallerOf(stack.inlineKey),
    isolates: gateways.map(
      ({ url }) =>
        (caller: Caller) =>
          outcomeAt(url, caller),
    ),
  })
  expect(counts.late, NEVER).toBe(0)
  expect(counts.revoked).toBe(REVOCATIONS)
  expect(counts.judged).toBeGreaterThanOrEqual(REVOCATIONS * gateways.length)
  // Some requests were admitted from the view, so the bound is really exercised.
  expect(counts.within).toBeGreaterThan(0)
  expect(counts.before).toBeGreaterThan(0)
})
