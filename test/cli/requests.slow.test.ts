import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { exportJWK, generateKeyPair } from 'jose'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import * as z from 'zod/mini'
import { newBanSchema } from '../../src/access/abuse/ban-record.ts'
import { newOverrideSchema, windowResetSchema } from '../../src/access/admission/limit-override.ts'
import { newRevocationSchema } from '../../src/access/revocation/record.ts'
import { newClientSchema } from '../../src/features/authorization-server/client.ts'
import { newAssignmentSchema } from '../../src/features/plans/assignment.ts'
import { createKey, mint } from '../harness/issuer.ts'
import { runHere } from './command-here.ts'
import { runCli } from './command-line.ts'
import { closeStubGateways, startStubGateway } from './stub-gateway.ts'

const ID = '7f3c2b1a-9d8e-4f6a-8b5c-1d2e3f4a5b6c'
const ENV = { PORTCULLIS_CLIENT_ID: ID, PORTCULLIS_CLIENT_SECRET: 'a-secret' }
const IDP = 'https://idp.example'

/** Runs a command. Returns its request to the API: method and path, query, and body. */
async function requestOf(args: readonly string[], input = '') {
  const apiKeys = ['', `/${ID}`, `/${ID}/secret`, `/${ID}/usage`].map((end) => `api-keys${end}`)
  const paths = ['clients', `clients/${ID}/secret`, ...apiKeys, 'audit']
  const others = [
    'revocations',
    'bans',
    'limits',
    'limits/overrides',
    'limits/reset',
    'tokens',
    'plans',
    'plans/assignments',
    'usage',
    'consents',
    'consents/withdrawals',
  ]
  const lists = {
    clients: [],
    apiKeys: [],
    events: [],
    revocations: [],
    bans: [],
    limits: [],
    days: [],
    keys: [],
    consents: [],
  }
  const body = { id: ID, token: 't', overrides: [], plans: [], assignments: [], ...lists }
  const answers = [...paths, ...others].map((path) => [`/-/admin/${path}`, { body }])
  const { url, requests } = await startStubGateway(Object.fromEntries(answers))
  const { code, stderr } = await runHere([...args, '--url', url], { env: ENV, input })
  expect(code, stderr).toBe(0)
  expect(requests.length).toBe(3)
  const [, , call] = requests
  const sent = call?.body ? (JSON.parse(call.body) as unknown) : undefined
  const query = Object.fromEntries(new URLSearchParams(call?.query))
  return { call: `${call?.method} ${call?.path.slice('/-/admin'.length)}`, query, sent }
}

afterEach(closeStubGateways)

describe('every option reaches the API under the name of its field:', () => {
  test.each<[string, string[], string, z.core.$ZodType | undefined, object]>([
    [
      'token mint',
      [
        '--sub',
        'a',
        '--role',
        'r',
        '--role',
        's',
        '--scope',
        'x',
        '--tenant',
        't',
        '--client',
        'c',
      ],
      'POST /tokens',
      undefined,
      { subject: 'a', roles: ['r', 's'], scopes: ['x'], tenant: 't', client: 'c' },
    ],
    [
      'token mint',
      ['--sub', 'a', '--ttl', '15m', '--format', 'opaque'],
      'POST /tokens',
      undefined,
      { subject: 'a', ttlSeconds: 900, format: 'opaque' },
    ],
    [
      'revoke session',
      ['s', '--issuer', IDP, '--reason', 'why'],
      'POST /revocations',
      newRevocationSchema,
      { kind: 'session', value: 's', issuer: IDP, reason: 'why' },
    ],
    [
      'clients create',
      [
        ...['--name', 'n', '--grant', 'token_exchange', '--grant', 'refresh_token'],
        ...['--scope', 'a', '--scope', 'b', '--role', 'r', '--audience', 'https://a.example'],
        ...['--tenant', 't', '--token-format', 'opaque', '--token-algorithm', 'EdDSA'],
        ...['--access-token-life', '10m', '--dpop-bound'],
      ],
      'POST /clients',
      newClientSchema,
      {
        name: 'n',
        grants: ['urn:ietf:params:oauth:grant-type:token-exchange', 'refresh_token'],
        scopes: ['a', 'b'],
        roles: ['r'],
        audiences: ['https://a.example'],
        tenant: 't',
        tokenFormat: 'opaque',
        tokenAlgorithm: 'EdDSA',
        accessTokenSeconds: 600,
        dpopBound: true,
      },
    ],
    [
      'clients create',
      [
        ...['--name', 'n', '--public', '--grant', 'authorization_code'],
        ...['--redirect-uri', 'https://a.example/cb', '--redirect-uri', 'http://127.0.0.1/cb'],
      ],
      'POST /clients',
      newClientSchema,
      {
        name: 'n',
        grants: ['authorization_code'],
        redirectUris: ['https://a.example/cb', 'http://127.0.0.1/cb'],
        public: true,
      },
    ],
    [
      'consents revoke',
      ['--subject', 'alice', '--client', 'https://app.example/c.json', '--issuer', IDP],
      'POST /consents/withdrawals',
      undefined,
      { subject: 'alice', client: 'https://app.example/c.json', issuer: IDP },
    ],
    [
      'clients rotate-secret',
      [ID, '--grace', '1h'],
      `POST /clients/${ID}/secret`,
      undefined,
      {
        graceSeconds: 3_600,
      },
    ],
    [
      'api-keys create',
      [
        ...['--name', 'n', '--subject', 's', '--role', 'r', '--scope', 'x', '--tenant', 't'],
        ...['--expires-in', '2d', '--metadata', 'team=a=b', '--metadata', 'env=prod'],
        ...['--plan', 'pro'],
      ],
      'POST /api-keys',
      undefined,
      {
        name: 'n',
        subject: 's',
        roles: ['r'],
        scopes: ['x'],
        tenant: 't',
        expiresInSeconds: 172_800,
        metadata: { team: 'a=b', env: 'prod' },
        plan: 'pro',
      },
    ],
    [
      'api-keys update',
      [ID, '--name', 'n', '--metadata', 'env=prod', '--expires-in', '2d', '--plan', 'pro'],
      `PATCH /api-keys/${ID}`,
      undefined,
      { name: 'n', metadata: { env: 'prod' }, expiresInSeconds: 172_800, plan: 'pro' },
    ],
    [
      'api-keys update',
      [ID, '--no-metadata', '--expires-in', 'never', '--no-plan'],
      `PATCH /api-keys/${ID}`,
      undefined,
      { metadata: {}, expiresInSeconds: null, plan: null },
    ],
    [
      'limits override',
      ['standard', 'a', '--requests', '7', '--expires-in', '90s', '--issuer', IDP, '--json'],
      'POST /limits/overrides',
      newOverrideSchema,
      { limit: 'standard', value: 'a', requests: 7, expiresInSeconds: 90, issuer: IDP },
    ],
    [
      'limits reset',
      // For a person, it also reads the limit, and looks for the caller in the trail.
      ['standard', 'a', '--issuer', IDP, '--json'],
      'POST /limits/reset',
      windowResetSchema,
      { limit: 'standard', value: 'a', issuer: IDP },
    ],
    [
      'plans assign',
      ['client', 'a', 'pro', '--expires-in', '90s', '--issuer', IDP],
      'POST /plans/assignments',
      newAssignmentSchema,
      { by: 'client', value: 'a', plan: 'pro', expiresInSeconds: 90, issuer: IDP },
    ],
    [
      'bans create subject',
      ['a', '--for', '90s', '--issuer', IDP, '--reason', 'why'],
      'POST /bans',
      newBanSchema,
      { kind: 'subject', value: 'a', seconds: 90, issuer: IDP, reason: 'why' },
    ],
  ])('%s %j', async (command, args, call, schema, sent) => {
    expect(await requestOf([...command.split(' '), ...args])).toEqual({ call, query: {}, sent })
    if (schema !== undefined) expect(z.safeParse(schema, sent).error).toBeUndefined()
  })

  test.each<[string, string[], string, object]>([
    ['revocations list', [], 'GET /revocations', {}],
    [
      'revocations list',
      ['--limit', '7', '--cursor', 'c'],
      'GET /revocations',
      {
        limit: '7',
        cursor: 'c',
      },
    ],
    ['clients list', ['--cursor', 'c'], 'GET /clients', { cursor: 'c' }],
    ['api-keys list', ['--limit', '1'], 'GET /api-keys', { limit: '1' }],
    [
      'api-keys list',
      ['--tenant', 'acme', '--subject', 'a&b'],
      'GET /api-keys',
      { tenant: 'acme', subject: 'a&b' },
    ],
    ['api-keys show', [ID], `GET /api-keys/${ID}`, {}],
    [
      'usage',
      ['--key', ID, '--since', '2026-11-20T17:00:00+01:00', '--until', '2026-11-21T00:00:00Z'],
      `GET /api-keys/${ID}/usage`,
      { since: '2026-11-20T16:00:00.000Z', until: '2026-11-21T00:00:00.000Z' },
    ],
    [
      'usage',
      ['--tenant', 'acme', '--reference', 'C-1', '--limit', '2', '--cursor', 'c'],
      'GET /usage',
      { tenant: 'acme', reference: 'C-1', limit: '2', cursor: 'c' },
    ],
    ['limits list', ['--limit', '1'], 'GET /limits', { limit: '1' }],
    ['plans list', ['--limit', '1'], 'GET /plans', { limit: '1' }],
    ['bans list', ['--cursor', 'c'], 'GET /bans', { cursor: 'c' }],
    [
      'consents list',
      ['--subject', 'alice', '--issuer', IDP],
      'GET /consents',
      { subject: 'alice', issuer: IDP },
    ],
    [
      'audit query',
      [
        ...['--subject', 'a&b', '--decision', 'deny', '--route', '/orders/:id', '--reason', 'r:x'],
        ...['--since', '2026-11-20T17:00:00+01:00', '--until', '2026-11-21T00:00:00Z'],
        ...['--host', '*.example.com', '--origin', 'orders', '--key', ID],
        ...['--limit', '9', '--cursor', 'c'],
      ],
      'GET /audit',
      {
        host: '*.example.com',
        origin: 'orders',
        key: ID,
        subject: 'a&b',
        decision: 'deny',
        route: '/orders/:id',
        reason: 'r:x',
        since: '2026-11-20T16:00:00.000Z',
        until: '2026-11-21T00:00:00.000Z',
        limit: '9',
        cursor: 'c',
      },
    ],
  ])('%s %j', async (command, args, call, query) => {
    expect(await requestOf([...command.split(' '), ...args])).toEqual({ call, query })
  })
})

test('limits list prints the mode and the lease of each limit', async () => {
  const limit = { limit: 10, windowSeconds: 60, by: 'subject', onUnavailable: 'deny', cost: 1 }
  const limits = [
    { ...limit, name: 'a', mode: 'observe', engine: 'exact', lease: { max: 20, ttlMs: 1_000 } },
    { ...limit, name: 'b', mode: 'enforce', engine: 'upstash', lease: null },
  ]
  const { url } = await startStubGateway({ '/-/admin/limits': { body: { limits, overrides: [] } } })
  const list = ['limits', 'list', '--url', url]
  expect((await runHere(list, { env: ENV })).stdout.trimEnd().split(/ *\n/)).toEqual([
    'NAME  LIMIT  WINDOW SECONDS  BY       MODE     ON UNAVAILABLE  ENGINE   COST  LEASE',
    'a     10     60              subject  observe  deny            exact    1     20 for 1000 ms',
    'b     10     60              subject  enforce  deny            upstash  1     -',
  ])
  const asJson = await runHere([...list, '--json'], { env: ENV })
  expect(JSON.parse(asJson.stdout)).toEqual({ limits, overrides: [] })
})

describe('revoke token', () => {
  test('reads the token id and the issuer from a JWT, and prefers the option --issuer', async () => {
    const token = await mint(await createKey('k'), { claims: { iss: IDP, jti: 'j' } })
    const { sent } = await requestOf(['revoke', 'token', '-'], `${token}\n`)
    expect(sent).toEqual({ kind: 'token', value: 'j', issuer: IDP })
    const other = await requestOf(['revoke', 'token', token, '--issuer', 'https://other.example'])
    expect(other.sent).toMatchObject({ value: 'j', issuer: 'https://other.example' })
  })

  test('sends any other text as a token id', async () => {
    const { sent } = await requestOf(['revoke', 'token', ID])
    expect(sent).toEqual({ kind: 'token', value: ID })
  })

  test('refuses a JWT without a token id', async () => {
    const token = await mint(await createKey('k'), { claims: { jti: undefined } })
    const { code, stderr } = await runCli(['revoke', 'token', '-'], { env: ENV, input: token })
    expect(code).toBe(2)
    expect(stderr).toContain('the token has no jti and iss')
  })
})

describe('clients create --jwks', () => {
  let folder: string
  const create = ['clients', 'create', '--name', 'bank', '--grant', 'client_credentials', '--jwks']

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-jwks-'))
  })

  afterAll(() => rm(folder, { recursive: true, force: true }))

  test('sends public keys, and refuses private keys', async () => {
    const pair = await generateKeyPair('ES256', { extractable: true })
    const [open, secret] = [join(folder, 'public.json'), join(folder, 'private.json')]
    const more = { kid: 'k', alg: 'ES256' }
    const jwks = { keys: [{ ...(await exportJWK(pair.publicKey)), ...more }] }
    await writeFile(open, `\ufeff${JSON.stringify(jwks)}`)
    const { sent } = await requestOf([...create, open])
    expect(sent).toEqual({ name: 'bank', grants: ['client_credentials'], jwks })
    expect(newClientSchema.safeParse(sent).error).toBeUndefined()

    const { url, requests } = await startStubGateway({})
    for (const key of [await exportJWK(pair.privateKey), { kty: 'oct', k: 'c2VjcmV0' }]) {
      await writeFile(secret, JSON.stringify({ keys: [key] }))
      const { code, stderr } = await runHere([...create, secret, '--url', url], { env: ENV })
      expect(code).toBe(2)
      expect(stderr).toContain('contains private keys')
    }
    expect(requests).toEqual([])
  })
})
