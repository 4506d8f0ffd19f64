/** Claims that only UserInfo has, from a real provider and from one whose answers are hostile. */
import type { ServerResponse } from 'node:http'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { startGateway, startGatewayFor } from './gateway.ts'
import { type SigningProvider, startSigningProvider } from './signing-provider.ts'
import { createUserAgent } from './user-agent.ts'

test('a real provider with thin ID tokens signs a user in with the roles of its UserInfo', async () => {
  const gateway = await startGateway({ kind: { isThin: true } })
  try {
    const visit = await createUserAgent().visit(`${gateway.url}/orders`)
    expect([visit.status, gateway.reached.length]).toEqual([200, 1])
    expect(gateway.provider.calls).toContain('GET /me')
    gateway.provider.user.roles = []
    const other = await createUserAgent().visit(`${gateway.url}/orders`)
    expect([other.status, gateway.reached.length]).toEqual([403, 1])
  } finally {
    await gateway.close()
  }
})

const json = (members: object) => (_request: unknown, response: ServerResponse) =>
  response.end(JSON.stringify(members))

describe.each(['auto', 'required', 'never'] as const)('with userInfo %s', (userInfo) => {
  let gateway: Awaited<ReturnType<typeof startGatewayFor>>
  let provider: SigningProvider
  beforeAll(async () => {
    provider = await startSigningProvider()
    const entry = { require: { groups: 'staff' }, rolesClaim: 'permissions' }
    gateway = await startGatewayFor([{ provider, name: 'Example', entry, signIn: { userInfo } }])
  })
  afterAll(async () => {
    await gateway?.close()
    await provider?.close()
  })
  beforeEach(() => {
    provider.reset()
    gateway.reached.length = 0
    vi.spyOn(console, 'error').mockImplementation(() => {})
  })
  afterEach(() => {
    vi.restoreAllMocks()
  })
  const whole = { sub: 'alice', groups: ['staff'], permissions: ['reader'] }
  const isUsed = userInfo !== 'never'

  /** Signs in, and returns the status of the page and the number of requests at the origin. */
  async function signIn(idToken: object = {}): Promise<readonly [number, number]> {
    provider.answer.idToken = { ...idToken }
    const visit = await createUserAgent().visit(`${gateway.url}/orders`)
    return [visit.status, gateway.reached.length]
  }

  test('roles and required claims that the ID token lacks count', async () => {
    provider.answer.userInfo = json(whole)
    expect(await signIn()).toEqual(isUsed ? [200, 1] : [403, 0])
  })

  test('the access token is sent as a bearer token, once for each login', async () => {
    const seen: unknown[] = []
    provider.answer.userInfo = (request, response) => {
      seen.push(request.headers.authorization)
      response.end(JSON.stringify(whole))
    }
    await signIn()
    expect(seen).toEqual(isUsed ? ['Bearer x'] : [])
  })

  test('a claim of the ID token is never replaced', async () => {
    provider.answer.userInfo = json({ ...whole, permissions: ['reader'] })
    expect(await signIn({ permissions: ['nothing'], groups: ['staff'] })).toEqual([403, 0])
  })

  if (!isUsed) return

  test.each<readonly [string, object]>([
    ['no subject', { sub: undefined }],
    ['an empty subject', { sub: '' }],
    ['no time of issue', { iat: undefined }],
    ['a time of issue in the future', { iat: Math.floor(Date.now() / 1000) + 600 }],
    ['no end', { exp: undefined }],
    ['an end in the past', { exp: 1 }],
    ['another audience', { aud: 'another-client' }],
    ['several audiences without azp', { aud: ['gateway', 'another-client'] }],
    ['another nonce', { nonce: 'another' }],
    ['another issuer', { iss: 'https://evil.test' }],
  ])('an ID token with %s is refused before UserInfo gets the access token', async (_, claims) => {
    let calls = 0
    provider.answer.userInfo = (_request, response) => {
      calls += 1
      response.end(JSON.stringify(whole))
    }
    expect(await signIn(claims)).toEqual([400, 0])
    expect(calls).toBe(0)
  })

  test.each<readonly [string, object]>([
    ['another user', { ...whole, sub: 'mallory' }],
    ['nobody', { ...whole, sub: undefined }],
    ['a user in another case', { ...whole, sub: 'Alice' }],
    ['a list of users', { ...whole, sub: ['alice'] }],
  ])('the claims of %s sign no user in', async (_name, members) => {
    provider.answer.userInfo = json(members)
    expect(await signIn()).toEqual([400, 0])
    // Neither if the ID token needs no help.
    expect(await signIn(whole)).toEqual([400, 0])
  })

  test.each<readonly [string, NonNullable<SigningProvider['answer']['userInfo']>]>([
    ['an error', (_, response) => response.writeHead(500).end()],
    ['too many requests', (_, response) => response.writeHead(429).end()],
    ['a redirect', (_, response) => response.writeHead(302, { location: '/jwks' }).end()],
    ['no JSON', (_, response) => response.end('<html>')],
    ['a list', (_, response) => response.end(JSON.stringify([whole]))],
    ['a name twice', (_, response) => response.end('{"sub":"mallory","sub":"alice"}')],
    ['a megabyte', json({ ...whole, padding: 'x'.repeat(1_048_576) })],
    ['no response', (request) => request.socket.destroy()],
  ])('%s is an outage', async (_name, answer) => {
    provider.answer.userInfo = answer
    expect(await signIn(whole)).toEqual([503, 0])
  })

  test('claims about the token and the login come from the ID token alone', async () => {
    const now = Math.floor(Date.now() / 1000)
    provider.answer.userInfo = json({ ...whole, acr: 'mfa', amr: ['mfa'], auth_time: now })
    provider.answer.idToken = { auth_time: undefined }
    const browser = createUserAgent()
    expect((await browser.visit(`${gateway.url}/orders`)).status).toBe(200)
    for (const path of ['/strong', '/recent'])
      expect([path, (await browser.visit(gateway.url + path)).status]).toEqual([path, 403])
    expect(gateway.reached.map(({ url }) => url)).toEqual(['/orders'])
  })

  test('a refused access token adds no claims', async () => {
    provider.answer.userInfo = (_, response) => response.writeHead(403).end()
    const isRequired = userInfo === 'required'
    expect(await signIn(whole)).toEqual(isRequired ? [400, 0] : [200, 1])
    expect(await signIn()).toEqual([isRequired ? 400 : 403, isRequired ? 0 : 1])
  })

  test.each([{ access_token: undefined }, { access_token: 'two words' }, { token_type: 'DPoP' }])(
    'no request is sent without a bearer token: %j',
    async (token) => {
      const answer = vi.fn(json(whole))
      provider.answer.userInfo = answer
      provider.answer.token = token
      expect(await signIn(whole)).toEqual(userInfo === 'required' ? [400, 0] : [200, 1])
      expect(answer).not.toHaveBeenCalled()
    },
  )

  test('a signed response counts if the provider signed it for this client', async () => {
    const signed = (claims: object) => async (_: unknown, response: ServerResponse) => {
      response.setHeader('content-type', 'application/jwt')
      response.end(await provider.sign({ ...whole, ...claims }))
    }
    const rightful = { iss: provider.issuer, aud: provider.client.id }
    provider.answer.userInfo = signed(rightful)
    expect(await signIn()).toEqual([200, 1])
    for (const claims of [
      { ...rightful, aud: 'another' },
      { ...rightful, iss: 'https://a.test' },
    ]) {
      provider.answer.userInfo = signed(claims)
      expect(await signIn()).toEqual([400, 1])
    }
  })
})

test('the claims of a signed-in user reach the origin in the headers of the policy', async () => {
  const provider = await startSigningProvider()
  const identityHeaders = { 'X-Auth-Email': 'email', 'X-Auth-Groups': 'groups' }
  const options = { policy: { identityHeaders } }
  const gateway = await startGatewayFor([{ provider, name: 'Example' }], options)
  try {
    provider.reset()
    provider.answer.idToken = {
      email: 'alice@example.com',
      permissions: ['reader'],
      roles: ['reader'],
    }
    provider.answer.userInfo = json({ sub: 'alice', groups: ['staff', 'admins'] })
    const agent = createUserAgent()
    for (let i = 0; i < 2; i++) {
      await agent.visit(`${gateway.url}/orders`)
      expect(gateway.reached.at(-1)?.headers).toMatchObject({
        'x-auth-email': 'alice@example.com',
        'x-auth-groups': 'staff,admins',
      })
    }
  } finally {
    await gateway.close()
    await provider.close()
  }
})

describe('an address and the flag that it is verified', () => {
  let gateway: Awaited<ReturnType<typeof startGatewayFor>>
  let provider: SigningProvider
  beforeAll(async () => {
    provider = await startSigningProvider()
    const identityHeaders = {
      'X-Auth-Email': 'email',
      'X-Auth-Email-Verified': 'email_verified',
      'X-Auth-Phone': 'phone_number',
      'X-Auth-Phone-Verified': 'phone_number_verified',
    }
    gateway = await startGatewayFor([{ provider, name: 'Example' }], {
      policy: { identityHeaders },
    })
  })
  afterAll(async () => {
    await gateway?.close()
    await provider?.close()
  })

  const [victim, own] = ['victim@corp.test', 'me@evil.test']
  const NONE = undefined
  test.each<readonly [string, object, object, readonly (string | undefined)[]]>([
    [
      'another address in the ID token gets no flag of UserInfo',
      { email: victim, phone_number: '+1' },
      { email: own, email_verified: true, phone_number: '+2', phone_number_verified: true },
      [victim, NONE, '+1', NONE],
    ],
    [
      'an address that UserInfo does not state gets no flag of it',
      { email: victim, email_verified: null },
      { email_verified: true },
      [victim, NONE, NONE, NONE],
    ],
    [
      'a flag in the ID token gets no address of UserInfo',
      { email_verified: true, phone_number_verified: true },
      { email: victim, phone_number: '+2' },
      [NONE, 'true', NONE, 'true'],
    ],
    [
      'the same address in both gets the flag of UserInfo',
      { email: own },
      { email: own, email_verified: false },
      [own, 'false', NONE, NONE],
    ],
    [
      'both of UserInfo count if the ID token has neither',
      { email: '' },
      { email: own, email_verified: true },
      [own, 'true', NONE, NONE],
    ],
  ])('%s', async (_name, idToken, userInfo, expected) => {
    provider.reset()
    provider.answer.idToken = { permissions: ['reader'], roles: ['reader'], ...idToken }
    provider.answer.userInfo = json({ sub: 'alice', ...userInfo })
    const before = gateway.reached.length
    await createUserAgent().visit(`${gateway.url}/orders`)
    expect(gateway.reached).toHaveLength(before + 1)
    const headers = gateway.reached.at(-1)?.headers ?? {}
    const names = ['email', 'email-verified', 'phone', 'phone-verified']
    expect(names.map((name) => headers[`x-auth-${name}`])).toEqual(expected)
  })
})
