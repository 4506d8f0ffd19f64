/** Errors are sent to the redirect URI of a client only if somebody has decided about it (RFC 9700). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type CodeGateway, newVerifier, REDIRECT_URI, startCodeGateway } from './code-gateway.ts'

const DOCUMENT = 'https://agent.example.org/client.json'
const KINDS = ['registered itself', 'has a cached document'] as const

let gateway: CodeGateway
const clients = new Map<string, string>()
beforeAll(async () => {
  gateway = await startCodeGateway(
    { registration: true },
    {
      fetchPublic: async () =>
        Response.json({
          client_id: DOCUMENT,
          client_name: 'Agent',
          redirect_uris: [REDIRECT_URI],
          token_endpoint_auth_method: 'none',
        }),
    },
  )
  const { body } = await gateway.send('/oauth/register', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ client_name: 'Agent', redirect_uris: [REDIRECT_URI] }),
  })
  clients.set('registered itself', body.client_id)
  clients.set('has a cached document', DOCUMENT)
  // A user has opened the document, so that it is cached.
  await gateway.authorize(gateway.requestOf(DOCUMENT, newVerifier()), gateway.signIn())
})
afterAll(() => gateway?.close())

const WRONG: readonly Readonly<Record<string, string | undefined>>[] = [
  { response_type: 'token' },
  { scope: 'a\\b' },
  { resource: 'nothing' },
  { resource: 'https://other.test/' },
  { code_challenge: undefined },
  { code_challenge_method: 'plain' },
  { prompt: 'create' },
  { prompt: 'none login' },
  { request: 'x' },
]
const requestOf = (client: string, more = {}) => gateway.requestOf(client, newVerifier(), more)

describe.each(KINDS)('for a client that %s [S77]', (kind) => {
  const own = () => clients.get(kind) ?? ''

  test.each([{ prompt: 'none' }, ...WRONG])(
    'no caller is redirected to it before a login: %j',
    async (more) => {
      const { status, location, text } = await gateway.authorize(requestOf(own(), more))
      if (status === 303) return expect(location).toMatch(/^\/oauth\/sign-in\?/)
      expect([status, location]).toEqual([400, null])
      expect(text).not.toContain('app.example.com')
    },
  )

  test.each([{ prompt: 'none' }, ...WRONG])(
    'a user who has not allowed it gets a page with a link at most: %j',
    async (more) => {
      const cookie = gateway.signIn({ subject: `stranger of ${kind}` })
      const reply = await gateway.authorize(requestOf(own(), more), cookie)
      expect([reply.status, reply.location]).toEqual([400, null])
    },
  )

  test('a user who has allowed it goes back to it with an error', async () => {
    const cookie = gateway.signIn({ subject: `friend of ${kind}` })
    await gateway.codeFor(requestOf(own()), cookie)
    const quiet = await gateway.authorize(
      requestOf(own(), { prompt: 'none', scope: 'x:y' }),
      cookie,
    )
    expect(quiet.location?.startsWith(REDIRECT_URI)).toBe(true)
    expect(quiet.answer.get('error')).toBe('invalid_scope')
  })

  test('a user who refuses goes back to it', async () => {
    const cookie = gateway.signIn({ subject: `sceptic of ${kind}` })
    const page = await gateway.authorize(requestOf(own()), cookie)
    const { location, answer } = await gateway.decide(page, cookie, 'deny')
    expect([location?.startsWith(REDIRECT_URI), answer.get('error')]).toEqual([
      true,
      'access_denied',
    ])
  })
})

test('the page for a signed-in user has a link with the error', async () => {
  const client = clients.get('registered itself') ?? ''
  const more = { resource: 'https://gateway.test/nothing' }
  const { text } = await gateway.authorize(requestOf(client, more), gateway.signIn())
  expect(text).toContain(`href="${REDIRECT_URI}?error=invalid_target`)
  expect(text).toContain('return to app.example.com')
})

test.each(WRONG)('a client of an operator gets its errors at once: %j [S77]', async (more) => {
  const client = await gateway.createClient()
  const { location, answer } = await gateway.authorize(requestOf(client, more))
  if (location?.startsWith('/oauth/sign-in?')) return
  expect(location?.startsWith(REDIRECT_URI)).toBe(true)
  expect(answer.get('error')).not.toBeNull()
})
