/** A session beside a token of any source. */
import { afterAll, expect, test } from 'vitest'
import { SESSION_COOKIE } from '../../../src/features/sign-in/session.ts'
import { RUNTIMES, startGatewayFor } from './gateway.ts'
import { startSigningProvider } from './signing-provider.ts'
import { createUserAgent } from './user-agent.ts'

const closing: (() => Promise<unknown>)[] = []
afterAll(() => Promise.all(closing.map((close) => close())))

test.each(RUNTIMES)('a second credential in another source is ambiguous on %s', async (runtime) => {
  const provider = await startSigningProvider()
  const gateway = await startGatewayFor(
    [
      {
        provider,
        name: 'Example',
        entry: { tokenSources: [{ header: 'X-Token' }, { cookie: 'token' }] },
      },
    ],
    {
      runtime,
      policy: { tokens: { sources: [{ header: 'Authorization' }, { header: 'X-Key' }] } },
    },
  )
  closing.push(
    () => gateway.close(),
    () => provider.close(),
  )
  const browser = createUserAgent()
  expect((await browser.visit(`${gateway.url}/orders`)).status).toBe(200)
  const session = `${SESSION_COOKIE}=${browser.jarOf(gateway.url).get(SESSION_COOKIE)}`
  const now = Math.floor(Date.now() / 1000)
  const claims = { iss: provider.issuer, aud: gateway.url, sub: 'bob', iat: now, exp: now + 60 }
  const token = await provider.sign({ ...claims, roles: ['reader'] }, { typ: 'at+jwt' })
  const send = async (headers: Record<string, string>) => {
    const response = await createUserAgent().send(`${gateway.url}/orders`, { headers })
    const text = await response.text()
    return response.ok ? 200 : (JSON.parse(text) as { code: string }).code
  }
  // Each credential alone is good.
  expect(await send({ cookie: session })).toBe(200)
  expect(await send({ 'x-token': token })).toBe(200)
  expect(await send({ cookie: `token=${token}` })).toBe(200)
  const reached = gateway.reached.length
  for (const headers of [
    { cookie: session, authorization: `Bearer ${token}` },
    { cookie: session, 'x-token': token },
    { cookie: session, 'x-key': token },
    { cookie: `${session}; token=${token}` },
    { cookie: session, 'x-token': 'garbage' },
    { cookie: session, 'x-token': '' },
  ] as Record<string, string>[])
    expect([headers, await send(headers)]).toEqual([headers, 'ambiguous_credentials'])
  expect(gateway.reached).toHaveLength(reached)
  // What is no source is not read.
  expect(await send({ cookie: session, 'x-other': token })).toBe(200)
})
