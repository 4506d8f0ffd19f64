import { decodeJwt } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type CodeGateway,
  MCP,
  newVerifier,
  OTHER_HOST,
  PUBLIC_URL,
  REDIRECT_URI,
  startCodeGateway,
} from './code-gateway.ts'

let gateway: CodeGateway
beforeAll(async () => {
  gateway = await startCodeGateway({ scopes: { 'mcp:use': 'Use the library' } })
})
afterAll(() => gateway.close())

test('a public client gets tokens for a user who allows it, and refreshes them', async () => {
  const id = await gateway.createClient()
  const verifier = newVerifier()
  const cookie = gateway.signIn()
  const page = await gateway.authorize(gateway.requestOf(id, verifier), cookie)
  expect(page.status).toBe(200)
  expect(page.text).toContain('Use the library')
  expect(page.text).toContain('app.example.com')
  const decided = await gateway.decide(page, cookie)
  expect(decided.status).toBe(303)
  expect(decided.location?.startsWith(`${REDIRECT_URI}?code=`)).toBe(true)
  expect(decided.answer.get('iss')).toBe(PUBLIC_URL)
  expect(decided.answer.get('state')).toBe('st')
  const issued = await gateway.redeem(id, decided.answer.get('code') ?? '', verifier)
  expect(issued.body).toMatchObject({ token_type: 'Bearer', scope: 'mcp:use books:read' })
  expect((await gateway.call(issued.body.access_token)).status).toBe(200)
  const refreshed = await gateway.refresh(id, issued.body.refresh_token, { resource: MCP })
  expect(refreshed.status).toBe(200)
  expect((await gateway.call(refreshed.body.access_token)).status).toBe(200)
})

test('the pages answer only at PUBLIC_URL: a script of another host allows no app [S76]', async () => {
  const id = await gateway.createClient()
  const cookie = gateway.signIn()
  const page = await gateway.authorize(gateway.requestOf(id, newVerifier()), cookie)
  expect(page.status).toBe(200)
  const handle = /name="request" value="([^"]+)"/.exec(page.text)?.[1] ?? ''
  const other = PUBLIC_URL.replace(/\/\/[^/:]+/, `//${OTHER_HOST}`)
  const asked = await gateway.send(`${other}/oauth/authorize?client_id=${id}`, {
    headers: { cookie },
  })
  expect([asked.status, asked.location]).toEqual([
    303,
    `${PUBLIC_URL}/oauth/authorize?client_id=${id}`,
  ])
  for (const path of ['/oauth/consent', '/oauth/consents']) {
    const decided = await gateway.send(other + path, {
      method: 'POST',
      headers: {
        cookie,
        origin: other,
        'sec-fetch-site': 'same-origin',
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: new URLSearchParams({ request: handle, decision: 'allow', client: id }).toString(),
    })
    expect([decided.status, decided.location]).toEqual([400, null])
  }
})

test('tokens of a session state the login of their user, and no refresh makes it newer', async () => {
  const id = await gateway.createClient()
  const authTimeSeconds = Math.floor(Date.now() / 1000) - 200
  const login = { acr: 'mfa', amr: ['otp'], authTimeSeconds }
  const times = { renewAtSeconds: 0, endsAtSeconds: authTimeSeconds + 3_600 }
  const tokensOf = async (facts: object) => {
    const cookie = gateway.signIn({ signIn: { providerSubject: 'alice', ...times, ...facts } })
    const verifier = newVerifier()
    const code = await gateway.codeFor(gateway.requestOf(id, verifier), cookie)
    const issued = await gateway.redeem(id, code, verifier)
    const refreshed = await gateway.refresh(id, issued.body.refresh_token)
    return [issued.body.access_token, refreshed.body.access_token]
  }
  for (const token of await tokensOf(login)) {
    expect(decodeJwt(token)).toMatchObject({ acr: 'mfa', amr: ['otp'], auth_time: authTimeSeconds })
    expect((await gateway.call(token, '/mcp/pay')).status).toBe(200)
  }
  const before = gateway.originCalls()
  for (const facts of [{}, { ...login, acr: 'pwd' }, { ...login, authTimeSeconds: undefined }])
    for (const token of await tokensOf(facts)) {
      const refused = await gateway.call(token, '/mcp/pay')
      expect([refused.status, refused.body.code]).toEqual([401, 'insufficient_user_authentication'])
    }
  expect(gateway.originCalls()).toBe(before)
})
