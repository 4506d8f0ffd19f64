/** `portcullis login` at a real provider, and operators' calls of the person at a real gateway. */
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { operators } from '../../../src/features/operators/index.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { startGateway, type TestGateway } from '../../harness/gateway.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { freePort } from '../../harness/process.ts'
import { runCli, startCli } from '../command-line.ts'
import { CLIENT_ID, startLoginProvider } from './provider.ts'

/** Below the time before its end at which a token is renewed: each command renews it. */
const LIFE_SECONDS = 25

let provider: Awaited<ReturnType<typeof startLoginProvider>>
let gateway: TestGateway
let device: TestServer
let url: string
let folder: string
let env: Record<string, string>
const file = () => join(folder, 'portcullis', 'logins.json')

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-login-'))
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  provider = await startLoginProvider(url, LIFE_SECONDS)
  const { issuer } = provider
  gateway = await startGateway({
    runtime: 'Node',
    port,
    publicUrl: 'own',
    policy: definePolicy({
      roles: { operator: ['portcullis:*'] },
      limits: {},
      features: [operators()],
      routes: [{ method: 'GET', path: '/a', permission: 'a:read' }],
    }),
    issuers: () => [{ issuer, audience: url, algorithms: ['ES256'] }],
    variables: { AUDIT_DATABASE: `sqlite:${join(folder, 'audit.db')}` },
  })
  env = {
    HOME: folder,
    XDG_CONFIG_HOME: folder,
    PORTCULLIS_URL: url,
    PORTCULLIS_LOGIN_ISSUER: issuer,
    PORTCULLIS_LOGIN_CLIENT_ID: CLIENT_ID,
    PORTCULLIS_LOGIN_RESOURCE: url,
    BROWSER: join(import.meta.dirname, 'browser.mjs'),
  }
})
afterAll(async () => {
  await gateway?.close()
  await provider?.close()
  await device?.close()
  rmSync(folder, { recursive: true, force: true })
})

const cli = (...args: string[]) => runCli(args, { env })

test('a person logs in with the browser; only that person can read the tokens', async () => {
  const { code, stdout, stderr } = await cli('login')
  expect(code, stderr).toBe(0)
  expect(stdout).toMatch(/^subject +alice$/m)
  for (const hidden of ['eyJ', '\u001b']) expect(stdout + stderr).not.toContain(hidden)
  expect((statSync(file()).mode & 0o777).toString(8)).toBe('600')
  const [, request = ''] = /(http\S+\/auth\?\S+)/.exec(stderr) ?? []
  const { searchParams } = new URL(request)
  expect(searchParams.get('code_challenge_method')).toBe('S256')
  expect(searchParams.get('redirect_uri')).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback$/)
})

test('whoami and operator commands use the login, and the trail shows the person, in one event', async () => {
  const who = await cli('whoami', '--json')
  expect(JSON.parse(who.stdout), who.stderr).toMatchObject({ subject: 'alice', accepted: true })
  const banned = await cli('bans', 'create', 'subject', 'mallory', '--for', '1h', '--json')
  expect(banned.code, banned.stderr).toBe(0)
  const trail = async () => {
    const { stdout } = await cli(
      'audit',
      'query',
      '--subject',
      'alice',
      '--change',
      'ban',
      '--json',
    )
    return JSON.parse(stdout || '{}').events ?? []
  }
  await expect.poll(trail, { interval: 500 }).toHaveLength(1)
  const [event] = await trail()
  expect(event).toMatchObject({
    actor: { issuer: provider.issuer, subject: 'alice', client: CLIENT_ID },
    change: { action: 'ban.create' },
  })
  const all = JSON.parse((await cli('audit', 'query', '--limit', '200', '--json')).stdout).events
  expect(all.filter(({ method }: { method: string }) => method === 'POST')).toHaveLength(1)
})

test('concurrent commands renew the token one after the other', async () => {
  const before = provider.calls.filter((call) => call === 'POST /token').length
  const outcomes = await Promise.all([
    cli('bans', 'list'),
    cli('bans', 'list'),
    cli('keys', 'list'),
  ])
  for (const { code, stderr } of outcomes) expect(code, stderr).toBe(0)
  expect(provider.calls.filter((call) => call === 'POST /token').length).toBeGreaterThan(before)
})

test('a login is not sent to another gateway', async () => {
  const { code, stderr } = await runCli(['bans', 'list'], {
    env: { ...env, PORTCULLIS_URL: 'http://127.0.0.1:9' },
  })
  expect(code).toBe(2)
  expect(stderr).toContain('portcullis login')
})

test('a file that others can read is refused', async () => {
  chmodSync(file(), 0o644)
  const { code, stderr } = await cli('whoami')
  expect(code).toBe(2)
  expect(stderr).toContain('chmod 600')
  chmodSync(file(), 0o600)
})

test('logout revokes the tokens at the provider, and removes them', async () => {
  const saved = JSON.parse(readFileSync(file(), 'utf8'))[url].refreshToken
  const { code, stdout, stderr } = await cli('logout', '--json')
  expect(code, stderr).toBe(0)
  expect(JSON.parse(stdout)).toEqual({ gateway: url, revoked: true })
  expect(readFileSync(file(), 'utf8')).toBe('{}\n')
  const form = { grant_type: 'refresh_token', refresh_token: saved, client_id: CLIENT_ID }
  const body = new URLSearchParams(form)
  expect((await fetch(`${provider.issuer}/token`, { method: 'POST', body })).status).toBe(400)
  expect((await cli('logout')).stderr).toContain('there is no login')
})

test('requests to the redirect URI without the state, or of another host, end nothing', async () => {
  const { BROWSER: _, ...without } = env
  const login = startCli(['login', '--no-browser'], { env: without })
  const { stderr } = await login.printed(/http\S+\/auth\?\S+\n/)
  const [, request = ''] = /(http\S+\/auth\?\S+)/.exec(stderr) ?? []
  const { searchParams } = new URL(request)
  const callback = searchParams.get('redirect_uri') ?? ''
  const forged = await fetch(`${callback}?code=x&state=forged&iss=${provider.issuer}`)
  expect(forged.status).toBe(404)
  const state = searchParams.get('state') ?? ''
  const refused = await fetch(
    `${callback}?${new URLSearchParams({ error: 'access_denied', error_description: 'no\u001b[2J', state, iss: provider.issuer })}`,
  )
  expect(refused.headers.get('content-security-policy')).toContain("default-src 'none'")
  const ended = await login.ended
  expect(ended.code).toBe(1)
  expect(ended.stderr).toMatch(/login_refused: .*access_denied/)
  expect(ended.stderr).not.toContain('\u001b')
  expect(existsSync(file()) ? readFileSync(file(), 'utf8') : '{}\n').toBe('{}\n')
})

test('a device code is polled until the person has entered it', async () => {
  let polls = 0
  device = await startHttpServer((request, response) => {
    const { url: base } = device
    const path = (request.url ?? '').replace(/\?.*/, '')
    const answer = (status: number, body: object) => {
      response.writeHead(status, { 'Content-Type': 'application/json' })
      response.end(JSON.stringify(body))
    }
    if (path === '/.well-known/openid-configuration')
      return answer(200, {
        issuer: base,
        token_endpoint: `${base}/token`,
        device_authorization_endpoint: `${base}/device`,
      })
    if (path === '/device')
      return answer(200, {
        device_code: 'secret-code',
        user_code: 'WDJB\u001b[2J',
        verification_uri: `${base}/enter`,
        expires_in: 60,
        interval: 1,
      })
    polls += 1
    if (polls === 1) return answer(400, { error: 'authorization_pending' })
    return answer(200, { access_token: 'opaque', token_type: 'Bearer', expires_in: 600 })
  })
  const { code, stdout, stderr } = await runCli(['login', '--device', '--scope', 'operate'], {
    env: { ...env, PORTCULLIS_LOGIN_ISSUER: device.url },
  })
  expect(code, stderr).toBe(0)
  expect(polls).toBe(2)
  expect(stderr).toContain('enter the code WDJB\\u{1b}[2J')
  expect(stdout + stderr).not.toMatch(/secret-code|opaque/)
  writeFileSync(file(), '{}\n', { mode: 0o600 })
})

test('an issuer without device codes says so', async () => {
  const { code, stderr } = await cli('login', '--device')
  expect(code).toBe(1)
  expect(stderr).toContain('no login by device code')
})
