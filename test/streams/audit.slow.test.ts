/** The end of an open stream is in the audit trail. */
import { expect, onTestFinished, test } from 'vitest'
import { newCallerOf, revokeAt } from '../access/admission/revocable.ts'
import { startGateway } from '../harness/gateway.ts'
import { AUDIENCE } from '../harness/issuer.ts'
import { startStreamOrigin } from './origin.ts'
import { streamPolicy } from './policy.ts'

test('a stream that is ended has a second event, with the request id of the first', async () => {
  const origin = await startStreamOrigin()
  const whole = await startGateway({ origin, audience: [AUDIENCE] })
  onTestFinished(whole.close)
  const { routes, ...policy } = streamPolicy()
  const gateway = whole.client({
    ...policy,
    routes: routes.filter(({ mcp }) => mcp === undefined),
  })
  const caller = await newCallerOf(whole.key)
  const response = await gateway.send('/events', '192.0.2.1', caller.token)
  expect(gateway.events.map(({ reason }) => reason)).toEqual(['ok'])
  await revokeAt(whole.redis, caller, 0)
  await expect(response.text()).rejects.toThrow()
  const [first, second, ...others] = gateway.events
  expect(others).toEqual([])
  expect(second).toMatchObject({
    requestId: first?.requestId,
    actor: first?.actor,
    route: '/events',
    decision: 'deny',
    reason: 'stream_ended:token_revoked:token',
    status: 200,
  })
  expect(second?.id).not.toBe(first?.id)
})
