import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer as createTlsServer } from 'node:https'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { writeAuthority, writeCertificate } from '../harness/certificate.ts'
import { freePort } from '../harness/process.ts'
import { runHere } from './command-here.ts'
import { runCli } from './command-line.ts'
import { closeStubGateways, METADATA, type StubResponse, startStubGateway } from './stub-gateway.ts'

const ID = '7f3c2b1a-9d8e-4f6a-8b5c-1d2e3f4a5b6c'
/** Characters that form-encoding changes, as RFC 6749 section 2.3.1 requires. */
const SECRET = 'se:cr%et+ with/everything='
const ENV = { PORTCULLIS_CLIENT_ID: ID, PORTCULLIS_CLIENT_SECRET: SECRET }

const NO_CLIENT =
  '  PORTCULLIS_CLIENT_ID with PORTCULLIS_CLIENT_SECRET is not a client of this gateway\n'

afterEach(closeStubGateways)

const keysList = (url: string, ...args: string[]) =>
  runHere(['keys', 'list', '--url', url, ...args], { env: ENV })

describe('an unreachable gateway: a command exits with 3', () => {
  test('if the port refuses the connection', async () => {
    const port = await freePort()
    const { code, stdout, stderr } = await keysList(`http://127.0.0.1:${port}`)
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
    expect(stderr).toBe(
      `portcullis: gateway_unreachable: http://127.0.0.1:${port} cannot be reached (ECONNREFUSED)\n` +
        '  start it, for example with `portcullis dev`, or correct its address and port: --url, or PORTCULLIS_URL\n',
    )
  })

  test('if its certificate is of an authority that Node does not trust, and names the remedy', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'portcullis-authority-'))
    writeAuthority(folder)
    writeCertificate(folder, 'gateway')
    const pem = (name: string) => readFileSync(join(folder, name))
    const tls = { key: pem('gateway.key'), cert: pem('gateway.pem') }
    const server = createTlsServer(tls, (_, response) => response.end('{}'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    const { code, stderr } = await keysList(`https://127.0.0.1:${port}`)
    server.close()
    rmSync(folder, { recursive: true })
    expect(code).toBe(3)
    expect(stderr).toContain(
      'has a certificate that Node does not trust (UNABLE_TO_VERIFY_LEAF_SIGNATURE). ' +
        'Set NODE_EXTRA_CA_CERTS to a PEM file with the certificate of its authority.',
    )
  })

  test('if the server accepts the connection and does not respond', async () => {
    const silent = createServer((socket) => socket.on('error', () => {}))
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    const { port } = silent.address() as { port: number }
    const { code, stdout, stderr } = await keysList(`http://127.0.0.1:${port}`, '--json')
    silent.close()
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
    expect(JSON.parse(stderr)).toEqual({
      error: {
        code: 'gateway_timeout',
        detail: `http://127.0.0.1:${port} did not respond within 10 s`,
        requestId: null,
      },
    })
  })

  test('if the server closes the connection', async () => {
    const closing = createServer((socket) => void socket.destroy())
    await new Promise<void>((resolve) => closing.listen(0, '127.0.0.1', resolve))
    const { port } = closing.address() as { port: number }
    const { code, stderr } = await keysList(`http://127.0.0.1:${port}`)
    closing.close()
    expect(code).toBe(3)
    expect(stderr).toContain('gateway_unreachable: ')
  })
})

describe('a response without a decision: a command exits with 3', () => {
  test.each([
    ['/-/admin/keys', { code: 'dependency_unavailable' }],
    ['/-/admin/keys', { code: 'overloaded' }],
    ['/oauth/token', { error: 'temporarily_unavailable' }],
  ])('if %s responds with 503 and %j', async (path, body) => {
    const { url } = await startStubGateway({
      [path]: { status: 503, headers: { 'Retry-After': '5' }, body },
    })
    const [name] = Object.values(body)
    expect(await keysList(url)).toEqual({
      code: 3,
      stdout: '',
      stderr: `portcullis: ${name}: status 503\n  try again in 5 s\n`,
    })
  })

  test.each([502, 503, 504])(
    'if a proxy in front of the gateway responds with a page and %s',
    async (status) => {
      const { url } = await startStubGateway({ '/-/admin/keys': { status, body: '<html>' } })
      const { code, stdout, stderr } = await keysList(url)
      expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
      expect(stderr).toContain(`unexpected_answer: ${url} answered with status ${status}`)
    },
  )

  test('if the gateway cannot introspect a token', async () => {
    const { url } = await startStubGateway({
      [METADATA]: { body: { introspection_endpoint: 'https://public.example/oauth/introspect' } },
      '/oauth/introspect': { status: 503, body: { error: 'temporarily_unavailable' } },
    })
    const verify = runCli(['token', 'verify', '-', '--url', url], { env: ENV, input: 'a-token' })
    expect(await verify).toMatchObject({ code: 3, stdout: '' })
  })
})

describe('a token request', () => {
  test('goes to the URL of the option, even if the metadata names another URL', async () => {
    const { url, requests } = await startStubGateway({ '/-/admin/keys': { body: { keys: [] } } })
    expect(await keysList(url, '--json')).toEqual({ code: 0, stdout: '{"keys":[]}\n', stderr: '' })
    const basic = 'se%3Acr%25et%2B+with%2Feverything%3D'
    expect(requests).toEqual([
      { method: 'GET', path: METADATA, query: '', authorization: undefined, body: '' },
      {
        method: 'POST',
        path: '/oauth/token',
        query: '',
        authorization: `Basic ${Buffer.from(`${ID}:${basic}`).toString('base64')}`,
        body: 'grant_type=client_credentials',
      },
      {
        method: 'GET',
        path: '/-/admin/keys',
        query: '',
        authorization: 'Bearer the-access-token',
        body: '',
      },
    ])
  })

  test('follows no redirect, so that no other server receives the secret or the token', async () => {
    const canary = await startStubGateway({})
    for (const path of [METADATA, '/oauth/token', '/-/admin/keys']) {
      const headers = { Location: `${canary.url}/stolen` }
      const { url } = await startStubGateway({ [path]: { status: 307, headers, body: '' } })
      const { code, stdout, stderr } = await keysList(url)
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      expect(stderr).toContain('unexpected_answer: ')
    }
    expect(canary.requests).toEqual([])
  })
})

const NOT_FOUND = { code: 'not_found', detail: 'None.' }

describe('a refusal: a command exits with 1', () => {
  const requestId = '0193b0a4-7c1e-7d3a-9b1c-2f6e8d4a5b6c'

  test('and prints the problem document of the gateway with its validation errors', async () => {
    const errors = [{ in: 'body', path: '/name', message: 'is too long' }]
    const problem = { code: 'unknown_code', detail: 'It is not possible.', requestId, errors }
    const { url } = await startStubGateway({ '/-/admin/keys': { status: 409, body: problem } })
    expect(await keysList(url)).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'portcullis: unknown_code: It is not possible.\n' +
        `  body/name: is too long\n  request ${requestId}\n`,
    })
    const { code, stdout, stderr } = await keysList(url, '--json')
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(JSON.parse(stderr)).toEqual({ error: problem })
  })

  test('and replaces a detail about schemas, which a command does not have', async () => {
    const errors = [{ in: 'query', path: '/limit', message: 'must be 1 to 200' }]
    const problem = {
      code: 'invalid_input',
      detail: 'No match with the schema.',
      requestId,
      errors,
    }
    const { url } = await startStubGateway({ '/-/admin/keys': { status: 422, body: problem } })
    const { code, stderr } = await keysList(url)
    expect(code).toBe(1)
    expect(stderr).toBe(
      'portcullis: invalid_input: The gateway refused the request.\n' +
        `  query/limit: must be 1 to 200\n  request ${requestId}\n`,
    )
  })

  test('and prints the error of the authorization server without the secret', async () => {
    const { url } = await startStubGateway({
      '/oauth/token': {
        status: 401,
        headers: { 'X-Request-Id': requestId },
        body: { error: 'invalid_client', error_description: 'Authentication failed' },
      },
    })
    const { code, stdout, stderr } = await keysList(url)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toBe(
      `portcullis: invalid_client: Authentication failed\n${NO_CLIENT}  request ${requestId}\n`,
    )
  })

  test.each([
    ['/oauth/token', { error: 'access_denied', error_description: 'Refused.' }, 'access_denied'],
    ['/-/admin/keys', { code: 'banned', detail: 'Refused.' }, 'banned'],
  ])('and prints for a ban how long it lasts and how to lift it: %s', async (path, body, code) => {
    const { url } = await startStubGateway({
      [path]: { status: 403, headers: { 'Retry-After': '3541' }, body },
    })
    const { stderr, ...ended } = await keysList(url)
    expect(ended).toEqual({ code: 1, stdout: '' })
    expect(stderr).toBe(
      `portcullis: ${code}: Refused.\n` +
        '  lift the ban with `portcullis bans delete` from another address, ' +
        'or by hand: docs/storage-schema.md\n  try again in 60 min\n',
    )
    const { error } = JSON.parse((await keysList(url, '--json')).stderr)
    expect(error).toEqual({ code, detail: 'Refused.', requestId: null, retryAfterSeconds: 3541 })
  })

  test.each<[string, StubResponse]>([
    ['a page', { status: 500, body: '<html>secret-detail</html>' }],
    ['JSON that is not a problem document', { status: 500, body: { message: 'secret-detail' } }],
    ['a page with success', { status: 200, body: '<html>secret-detail</html>' }],
    ['JSON that is not an object', { status: 200, body: '"secret-detail"' }],
  ])('and does not repeat a response that no gateway sends: %s', async (_what, answer) => {
    const { url } = await startStubGateway({ '/-/admin/keys': answer })
    const { code, stdout, stderr } = await keysList(url)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toBe(
      `portcullis: unexpected_answer: ${url} answered with status ${answer.status}, ` +
        'but not in the form of a gateway\n',
    )
  })

  test.each([
    ['no metadata', { [METADATA]: { status: 404, body: NOT_FOUND } }],
    ['no token endpoint', { [METADATA]: { body: { token_endpoint: 7 } } }],
    ['no token', { '/oauth/token': { body: { token_type: 'Bearer' } } }],
  ])('and sends no call to the API if the gateway responds with %s', async (_what, answers) => {
    const { url, requests } = await startStubGateway(answers)
    expect(await keysList(url)).toMatchObject({ code: 1, stdout: '' })
    expect(requests.map(({ path }) => path)).not.toContain('/-/admin/keys')
  })

  test('and names the features that the gateway lacks', async () => {
    const none = await startStubGateway({ [METADATA]: { status: 404, body: NOT_FOUND } })
    expect((await keysList(none.url)).stderr).toBe(
      'portcullis: unexpected_answer: the gateway has no authorization server: the command line needs ' +
        "authorizationServer() and operators() in the policy's features, and SIGNING_KEYS\n",
    )
    const { url } = await startStubGateway({ '/-/admin/keys': { status: 404, body: NOT_FOUND } })
    expect((await keysList(url)).stderr).toBe(
      "portcullis: not_found: the gateway has no operators' API: its policy needs operators() in its " +
        "features; import { operators } from 'portcullis/operators'\n",
    )
  })

  test.each([
    ['plans', 'plans', ['list']],
    ['plans', 'plans', ['assign', 'tenant', 'acme', 'pro']],
    ['plans', 'plans', ['remove', ID]],
    ['relations', 'relations', ['read']],
  ])('and names the feature that a policy without %s lacks', async (feature, command, args) => {
    const missing = Object.fromEntries(
      ['plans', 'plans/assignments', `plans/assignments/${ID}`, 'relations'].map((path) => [
        `/-/admin/${path}`,
        { status: 404, body: NOT_FOUND },
      ]),
    )
    const { url } = await startStubGateway({ ...missing, '/-/admin/keys': { body: { keys: [] } } })
    const { code, stderr } = await runHere([command, ...args, '--url', url], { env: ENV })
    expect(code).toBe(1)
    expect(stderr).toContain(
      `not_found: the gateway has no ${feature}: its policy needs ${feature}()`,
    )
    expect(stderr).toContain(`import { ${feature} } from 'portcullis/${feature}'`)
  })

  test('and does not name a feature that the gateway has, if only a record is unknown', async () => {
    const { url } = await startStubGateway({
      '/-/admin/keys': { body: { keys: [] } },
      '/-/admin/plans': { body: { plans: [], assignments: [] } },
      [`/-/admin/plans/assignments/${ID}`]: { status: 404, body: NOT_FOUND },
    })
    const { stderr } = await runHere(['plans', 'remove', ID, '--url', url], { env: ENV })
    expect(stderr).toBe('portcullis: not_found: None.\n')
  })

  test('and says in place of the messages of schemas what a value must be', async () => {
    const errors = [
      {
        in: 'params',
        path: '/id',
        message: 'Invalid UUID',
        rule: { code: 'invalid_format', format: 'uuid' },
      },
      {
        in: 'body',
        path: '/expiresInSeconds',
        message: 'Too small: expected number to be >=300',
        rule: { code: 'too_small', origin: 'number', minimum: 300, inclusive: true },
      },
      {
        in: 'query',
        path: '/status',
        message: 'Invalid option: expected one of "active"|"revoked"',
        rule: { code: 'invalid_value', values: ['active', 'revoked'] },
      },
    ]
    const problem = { code: 'invalid_input', detail: 'None.', errors }
    const { url } = await startStubGateway({ '/-/admin/clients': { status: 422, body: problem } })
    const { stderr } = await runHere(['clients', 'list', '--url', url], { env: ENV })
    expect(stderr).toBe(
      'portcullis: invalid_input: The gateway refused the request.\n' +
        '  params/id: must be an id, which is a UUID; `portcullis clients list` shows the ids\n' +
        '  body/expiresInSeconds: must be at least 5m\n' +
        '  query/status: must be active or revoked\n',
    )
  })

  test('and escapes control characters of the gateway for the terminal', async () => {
    const detail = 'No.\u001b]0;owned\u0007\u202e'
    const keys = [{ kid: 'a\u001b[2Jb', alg: 'ES256', state: 'active' }]
    const bad = await startStubGateway({
      '/-/admin/keys': { status: 403, body: { code: 'x', detail } },
    })
    const good = await startStubGateway({ '/-/admin/keys': { body: { keys } } })
    const { stderr } = await keysList(bad.url)
    const { stdout } = await keysList(good.url)
    for (const text of [stderr, stdout]) {
      expect(text).toContain('\\u{1b}')
      expect(text.replaceAll('\n', '')).toMatch(/^[^\p{Cc}\p{Cf}]*$/u)
    }
  })
})
