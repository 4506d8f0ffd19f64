/** Authorization requests that go to the provider directly (RFC 9126), and a client with a key. */
import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { startGateway, startGatewayFor } from './gateway.ts'
import { type SigningProvider, startSigningProvider } from './signing-provider.ts'
import { createUserAgent } from './user-agent.ts'

test('a real provider that requires pushed requests and private_key_jwt signs a user in', async () => {
  const gateway = await startGateway({ kind: { isStrict: true } })
  try {
    const browser = createUserAgent()
    const visit = await browser.visit(`${gateway.url}/orders/7?b=c`)
    expect([visit.status, gateway.reached.map(({ url }) => url)]).toEqual([200, ['/orders/7?b=c']])
    expect(gateway.provider.calls.slice(0, 3)).toEqual([
      'GET /.well-known/openid-configuration',
      'POST /request',
      'GET /auth',
    ])
    expect((await browser.send(`${gateway.url}/orders`)).status).toBe(200)
  } finally {
    await gateway.close()
  }
})

describe('a provider that offers pushed requests', () => {
  let gateway: Awaited<ReturnType<typeof startGatewayFor>>
  let provider: SigningProvider
  beforeAll(async () => {
    provider = await startSigningProvider()
    const signIn = { pushedRequests: true, parameters: { prompt: 'consent', state: 'x' } }
    // `state` is one of the sign-in itself: such a setting is refused at the start.
    await expect(startGatewayFor([{ provider, name: 'Example', signIn }])).rejects.toThrow(/state/)
    gateway = await startGatewayFor([
      { provider, name: 'Example', signIn: { pushedRequests: true } },
    ])
  })
  afterAll(async () => {
    await gateway?.close()
    await provider?.close()
  })
  beforeEach(() => {
    provider.reset()
    provider.requests.length = 0
    gateway.reached.length = 0
  })
  const start = () => createUserAgent().visit(`${gateway.url}/orders`)

  test('gets the parameters from the gateway, and only the reference from the browser', async () => {
    const forms: URLSearchParams[] = []
    provider.answer.push = (form, response) => {
      forms.push(form)
      response.writeHead(201)
      response.end('{"request_uri":"urn:example:1","expires_in":60}')
    }
    expect((await start()).status).toBe(200)
    expect(forms.map((form) => [...form.keys()].sort())).toEqual([
      [
        ...['client_id', 'code_challenge', 'code_challenge_method', 'nonce', 'redirect_uri'],
        ...['response_type', 'scope', 'state'],
      ],
    ])
    expect(provider.requests.map(String)).toEqual([
      'client_id=gateway&request_uri=urn%3Aexample%3A1',
    ])
  })

  test.each<readonly [string, (response: ServerResponse) => unknown]>([
    [
      'refuses the request',
      (response) => response.writeHead(400).end('{"error":"invalid_request"}'),
    ],
    ['refuses the client', (response) => response.writeHead(401).end('{"error":"invalid_client"}')],
    ['is out of order', (response) => response.writeHead(500).end()],
    ['sends no reference', (response) => response.writeHead(201).end('{"expires_in":60}')],
    ['sends a page', (response) => response.writeHead(201).end('<html>')],
  ])(
    'is an outage if it %s: the parameters never go through the browser instead',
    async (_name, answer) => {
      vi.spyOn(console, 'error').mockImplementation(() => {})
      provider.answer.push = (_form, response) => answer(response)
      const visit = await start()
      expect([visit.status, provider.requests.length, gateway.reached.length]).toEqual([503, 0, 0])
      vi.restoreAllMocks()
    },
  )
})
