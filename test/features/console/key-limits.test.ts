/** What an API key has left of its limits, on one server and over the lanes of a cluster. */
import { expect, test } from 'vitest'
import { console as consoleFeature } from '../../../src/features/console/index.ts'
import { operators } from '../../../src/features/operators/index.ts'
import { signIn } from '../../../src/features/sign-in/index.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { PUBLIC_URL, startGateway } from '../../harness/gateway.ts'
import { openSession, SIGN_IN_VARIABLES } from '../operators/sessions.ts'

const rule = { limit: 9, windowSeconds: 86_400, onUnavailable: 'deny' } as const
const policy = definePolicy({
  roles: { reader: ['orders:read'], operator: ['portcullis:*'] },
  features: [operators({ sessions: true }), signIn(), consoleFeature()],
  limits: {
    own: { ...rule, by: 'key' },
    mine: { ...rule, by: 'subject' },
    ours: { ...rule, by: 'tenant' },
  },
  routes: [
    { method: 'GET', path: '/orders', permission: 'orders:read', limits: ['own', 'mine', 'ours'] },
  ],
})

test.each([
  ['one server', 0],
  ['lanes', 4],
])('the operators read the units of the windows that requests count, on %s', async (_, lanes) => {
  const gateway = await startGateway({ policy, lanes, signs: true, variables: SIGN_IN_VARIABLES })
  try {
    const app = gateway.isolate()
    const send = (path: string, token: string, body?: object) =>
      app.fetch(
        new Request(PUBLIC_URL + path, {
          method: body === undefined ? 'GET' : 'POST',
          headers: {
            authorization: `Bearer ${token}`,
            'cf-connecting-ip': '192.0.2.1',
            'content-type': 'application/json',
          },
          ...(body && { body: JSON.stringify(body) }),
        }),
      )
    const operator = await gateway.token({ claims: { sub: 'olga', roles: ['operator'] } })
    for (const subject of ['anne', 'bob', 'carol']) {
      const order = { name: 'robot', subject, tenant: `${subject}-tenant`, roles: ['reader'] }
      const created = await send('/-/admin/api-keys', operator, order)
      const { id, apiKey } = (await created.json()) as { id: string; apiKey: string }
      for (const _ of [1, 2]) expect((await send('/orders', apiKey)).status).toBe(200)
      const read = await send(`/-/admin/api-keys/${id}/limits`, operator)
      const left = ['own', 'mine', 'ours'].map((name) => ({ name, limit: 9, remaining: 7 }))
      expect(await read.json()).toMatchObject({ limits: left })
    }
    const Cookie = await openSession(gateway.redis, PUBLIC_URL, { roles: ['operator'] })
    const absent = await app.fetch(
      new Request(`${PUBLIC_URL}/-/console/mcp`, {
        headers: { Cookie, accept: 'text/html', 'cf-connecting-ip': '192.0.2.1' },
      }),
    )
    expect(absent.status).toBe(404)
    const text = await absent.text()
    expect(text).toContain('The policy of this gateway has no MCP server')
    expect(text).not.toContain('permission')
  } finally {
    await gateway.close()
  }
})
