/** `portcullis redis import`: gateways on a cluster decide as those on the standalone Redis did. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { importRedis } from '../../cli/import-redis.ts'
import { createRevocations } from '../../src/access/revocation/redis/revocations.ts'
import { createReferenceStore } from '../../src/access/tokens/redis/references.ts'
import { credentialHash, principalOfRecord } from '../../src/access/tokens/reference.ts'
import { authorizationServer } from '../../src/features/authorization-server/index.ts'
import { operators } from '../../src/features/operators/index.ts'
import { plans } from '../../src/features/plans/index.ts'
import type { Login } from '../../src/features/sign-in/provider.ts'
import { createSessionStore } from '../../src/features/sign-in/redis/session-store.ts'
import { createSeal } from '../../src/features/sign-in/seal.ts'
import { createSessions } from '../../src/features/sign-in/sessions.ts'
import { definePolicy } from '../../src/policy/policy.ts'
import type { RedisConnection } from '../../src/redis/connection.ts'
import { tagSlot } from '../../src/redis/lanes.ts'
import { importKeys } from '../../src/runtimes/node/redis/import/import-keys.ts'
import { connectResp } from '../../src/runtimes/node/redis/resp.ts'
import { type Server, startGateway, startServer, type TestGateway } from '../harness/gateway.ts'
import { freePort } from '../harness/process.ts'
import { startRedisCluster, type TestCluster } from '../harness/redis-cluster.ts'
import { hasRedisServer } from '../harness/resp-server.ts'
import { runHere } from './command-here.ts'

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'
const LANES = 16
const BANNED = '203.0.113.7'
const CONTROL = 'pc:{c}:'

const few = { limit: 4, windowSeconds: 600, by: 'subject', onUnavailable: 'deny' } as const
const policy = definePolicy({
  roles: { reader: ['orders:read'], operator: ['portcullis:*'] },
  limits: {
    few,
    keyed: { ...few, by: 'key' },
    plan: plans({ plans: { free: '1/h', pro: '1000/h' }, default: 'free', planBy: ['subject'] }),
    operators: { ...few, limit: 10_000 },
  },
  features: [operators(), authorizationServer()],
  tokens: { sessionSeconds: 3_600 },
  routes: [
    { method: 'GET', path: '/orders', permission: 'orders:read', limits: ['few'] },
    { method: 'GET', path: '/keyed', permission: 'orders:read', limits: ['keyed'] },
    { method: 'GET', path: '/planned', permission: 'orders:read', limits: ['plan'] },
  ],
})

const IDP = 'https://login.example.com'
const LOGIN: Login = {
  principal: {
    ...{ issuer: IDP, tokenIssuer: IDP, subject: 'anne', client: 'gateway', tenant: undefined },
    ...{ session: undefined, roles: [], scopes: [], tokenId: undefined, tokenIdHash: undefined },
    ...{ confirmation: undefined, issuedAtSeconds: 0, expiresAtSeconds: 0 },
  },
  ...{ tokens: { idToken: 'x.y.z' }, refreshAtSeconds: undefined, providerSubject: 'anne' },
  ...{ providerSession: undefined, facts: {} },
}

describe.skipIf(!hasRedisServer)('after an import', () => {
  let cluster: TestCluster
  let gateway: TestGateway
  let moved: Server
  let operator: string
  beforeAll(async () => {
    cluster = await startRedisCluster({ replicas: 0 })
    gateway = await startGateway({
      ...{ runtime: 'Node', redis: 'resp', policy, signs: true, publicUrl: 'own' },
      variables: { TRUSTED_PROXIES: '127.0.0.1/32', REDIS_TIMEOUT_MS: '1000' },
    })
    operator = await gateway.token({ claims: { sub: 'olga', roles: ['operator'] } })
  })
  afterAll(async () => {
    await moved?.stop()
    await gateway?.close()
    await cluster?.close()
  })

  const environment = (more: Readonly<Record<string, string>> = {}) => ({
    REDIS_URL_FROM: gateway.redis.redisUrl,
    REDIS_URL: `${cluster.url}/?lanes=${LANES}`,
    REDIS_REPLICAS_ACKED: '0',
    ...more,
  })
  async function runImport(args: readonly string[] = [], more = {}) {
    const command = ['redis', 'import', '--json', ...args]
    const { code, stdout, stderr } = await runHere(command, { env: environment(more) })
    // The client of a cluster may print what an operator must know before the error.
    const answer = (stdout || stderr).trimEnd().split('\n').at(-1) ?? ''
    expect(answer, stdout + stderr).toMatch(/^\{/)
    return { code, text: stdout + stderr, ...JSON.parse(answer) }
  }

  async function admin(method: string, path: string, body?: object) {
    const response = await fetch(`${gateway.url}/-/admin${path}`, {
      method,
      headers: { Authorization: `Bearer ${operator}`, 'Content-Type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    expect(response.ok, `${method} ${path}: ${response.status} ${text}`).toBe(true)
    return text === '' ? {} : JSON.parse(text)
  }

  async function form(url: string, path: string, fields: Readonly<Record<string, string>>) {
    const response = await fetch(url + path, { method: 'POST', body: new URLSearchParams(fields) })
    const text = await response.text()
    return { status: response.status, body: text === '' ? {} : JSON.parse(text) }
  }

  async function token(claims: Readonly<Record<string, unknown>> = {}) {
    const [sub, jti] = [crypto.randomUUID(), crypto.randomUUID()]
    const credential = await gateway.token({ claims: { sub, jti, roles: ['reader'], ...claims } })
    return { sub, jti, credential }
  }
  const revoke = (kind: string, value: string) => admin('POST', '/revocations', { kind, value })

  /** Returns the status at one gateway, and whether the request reached the origin. */
  async function request(url: string, credential: string, path = '/orders', address = '192.0.2.1') {
    const before = gateway.requests.length
    const headers = { Authorization: `Bearer ${credential}`, 'X-Forwarded-For': address }
    const response = await fetch(url + path, { headers })
    await response.arrayBuffer()
    return { status: response.status, reached: gateway.requests.length - before }
  }
  const ADMITTED = { status: 200, reached: 1 }

  async function controlNode() {
    const node = await cluster.ownerOf(tagSlot('c'))
    if (node === undefined) throw new Error('no master has the control lane')
    return node.direct
  }

  /** Returns the master with a key: of the control lane, or of the only other lane that has it. */
  async function placeOf(name: string) {
    const control = await controlNode()
    if ((await control.exists(CONTROL + name)) === 1)
      return { direct: control, key: CONTROL + name }
    const found = await Promise.all(
      cluster.masters.map(async ({ direct }) =>
        (await direct.keys(`pc:{*}:${name}`)).map((key) => ({ direct, key })),
      ),
    )
    const [place, ...more] = found.flat()
    if (place === undefined || more.length > 0) throw new Error(`${name}: ${more.length}`)
    return place
  }

  test('gateways on the cluster refuse, admit and count as those on the standalone', async () => {
    // Access that ends before the first pass.
    const refused: { credential: string; address?: string }[] = []
    const byJti = await token()
    await revoke('token', byJti.jti)
    const bySession = await token({ sid: 'session-1' })
    await revoke('session', 'session-1')
    const bySubject = await token()
    await revoke('subject', bySubject.sub)
    const byClient = await token({ client_id: 'client-1' })
    await revoke('client', 'client-1')
    const byTenant = await token({ tenant: 'tenant-1' })
    await revoke('tenant', 'tenant-1')
    const banned = await token()
    await admin('POST', '/bans', { kind: 'subject', value: banned.sub, seconds: 3_600 })
    await admin('POST', '/bans', { kind: 'address', value: BANNED, seconds: 3_600 })
    refused.push(byJti, bySession, bySubject, byClient, byTenant, banned)
    refused.push({ ...(await token()), address: BANNED })
    const endedKey = await admin('POST', '/api-keys', {
      name: 'x',
      subject: 'x',
      roles: ['reader'],
    })
    await admin('DELETE', `/api-keys/${endedKey.id}`)
    refused.push({ credential: endedKey.apiKey })

    // What is in force, and goes on.
    const order = { name: 'nightly', subject: 'reports', roles: ['reader'] }
    const key = await admin('POST', '/api-keys', order)
    for (const _ of [1, 2])
      expect(await request(gateway.url, key.apiKey, '/keyed')).toEqual(ADMITTED)
    const half = await token()
    for (const _ of [1, 2]) expect(await request(gateway.url, half.credential)).toEqual(ADMITTED)
    const planned = await token()
    const assignment = { by: 'subject', value: planned.sub, plan: 'pro' }
    await admin('POST', '/plans/assignments', assignment)
    const app = await admin('POST', '/clients', {
      ...{
        name: 'app',
        grants: [EXCHANGE, 'refresh_token'],
        tokenFormat: 'opaque',
        roles: ['reader'],
      },
    })
    const client = { client_id: app.clientId, client_secret: app.clientSecret }
    const user = await token()
    const session = await form(gateway.url, '/oauth/token', {
      ...{ ...client, grant_type: EXCHANGE },
      ...{ subject_token: user.credential, subject_token_type: ACCESS_TOKEN },
    })
    expect(session.status, JSON.stringify(session.body)).toBe(200)
    const lifted = await token()
    const ban = { kind: 'subject', value: lifted.sub, seconds: 3_600 }
    const { id: liftedBan } = await admin('POST', '/bans', ban)
    const [late, lateSubject] = [await token(), await token()]
    const lateKey = await admin('POST', '/api-keys', { ...order, subject: 'late' })

    const dry = await runImport(['--dry-run'])
    expect(dry, dry.text).toMatchObject({ code: 0, isDryRun: true, unknown: 0 })
    expect(dry.copied).toBeGreaterThan(20)
    const written = await (await controlNode()).keys('pc:*')
    expect(written.filter((name) => !/:(lanes|marker)$/.test(name))).toEqual([])

    const first = await runImport()
    expect(first, first.text).toMatchObject({
      code: 0,
      outcome: 'done',
      isSettled: true,
      removed: 0,
    })
    expect(first.left).toBeGreaterThan(2)
    expect(await runImport()).toMatchObject({ code: 0, passes: 1, copied: 0, removed: 0 })

    // Changes between two passes, also of what the first one has copied.
    await revoke('token', late.jti)
    await revoke('subject', lateSubject.sub)
    await admin('DELETE', `/api-keys/${lateKey.id}`)
    await admin('DELETE', `/bans/${liftedBan}`)
    refused.push(late, lateSubject, { credential: lateKey.apiKey })

    const last = await runImport(['--final'])
    expect(last, last.text).toMatchObject({ code: 0, outcome: 'done', isSettled: true, left: 0 })
    expect(last.removed).toBeGreaterThan(0)
    for (const secret of [half.sub, key.apiKey, app.clientSecret, BANNED, 'pc:'])
      expect(first.text + last.text).not.toContain(secret)

    // The source has everything as before, and the cluster has the same lives.
    const [source, control] = [gateway.redis.direct, await controlNode()]
    const names = (await source.keys('pc:*')).filter((name) =>
      /^pc:(cutoff|revoked|ban|api-key|reference|refresh|revocation|client|plan):/.test(name),
    )
    expect(names.length).toBeGreaterThan(20)
    const inLanes: string[] = []
    for (const name of names) {
      const place = await placeOf(name.slice(3))
      const [life, copied] = [await source.pttl(name), await place.direct.pttl(place.key)]
      expect(Math.abs(life - copied), name).toBeLessThan(1_000)
      if (!place.key.startsWith(CONTROL)) inLanes.push(name)
    }
    // The opaque token and the refresh family of the user. The control lane decides about API keys.
    expect(inLanes.map((name) => name.split(':')[1]).sort()).toEqual(['reference', 'refresh'])
    for (const name of await control.keys(`${CONTROL}holders:*`))
      expect(name).toContain(`holders:${CONTROL}`)

    moved = await startServer({ runtime: 'Node', policy }, clusterEnvironment(), await freePort())
    for (const { credential, address } of refused) {
      const { status, reached } = await request(moved.url, credential, '/orders', address)
      expect([401, 403]).toContain(status)
      expect(reached).toBe(0)
    }
    expect(await request(moved.url, lifted.credential)).toEqual(ADMITTED)
    for (const [credential, path] of [
      [half.credential, '/orders'],
      [key.apiKey, '/keyed'],
    ] as const) {
      for (const _ of [3, 4]) expect(await request(moved.url, credential, path)).toEqual(ADMITTED)
      expect(await request(moved.url, credential, path)).toEqual({ status: 429, reached: 0 })
    }
    for (const _ of [1, 2, 3])
      expect(await request(moved.url, planned.credential, '/planned')).toEqual(ADMITTED)
    expect(await request(moved.url, session.body.access_token)).toEqual(ADMITTED)
    const renewed = await form(moved.url, '/oauth/token', {
      ...{ ...client, grant_type: 'refresh_token', refresh_token: session.body.refresh_token },
    })
    expect(renewed.status, JSON.stringify(renewed.body)).toBe(200)

    const again = await runImport(['--final'])
    expect(again).toMatchObject({ code: 1, error: { code: 'ended' } })
  })

  function clusterEnvironment() {
    const { UPSTASH_REDIS_REST_URL: _, UPSTASH_REDIS_REST_TOKEN: __, ...rest } = gateway.environment
    return { ...rest, REDIS_URL: environment().REDIS_URL, REDIS_REPLICAS_ACKED: '0' }
  }

  /** Returns what the command gives to `importKeys`, with another prefix. */
  function connected(keyPrefix: string) {
    const target = { url: environment().REDIS_URL, keyPrefix, replicasAcked: 0 }
    const from = connectResp({ url: gateway.redis.redisUrl, keyPrefix })
    const to = connectResp(target)
    const source = from.connect({ timeoutMs: 20_000 })
    const { lanes, ...cluster } = to.connect({ timeoutMs: 20_000 })
    if (lanes === undefined) throw new Error('there are no lanes')
    const options = {
      ...{ source, cluster: { ...cluster, lanes }, origin: 'here' },
      ...{ isFinal: false, isDry: false, merges: false },
      now: () => Date.now(),
      onPass: () => {},
      onProgress: () => {},
    }
    const close = () => {
      from.close()
      to.close()
    }
    return { source, options, close }
  }

  test('the last pass does not end the import while the source still changes', async () => {
    const { source, options, close } = connected('w:')
    let isWriting = true
    const changing = {
      ...source,
      async send(...call: Parameters<typeof source.send>) {
        if (isWriting && call[0][0]?.[0] === 'SCAN')
          await source.send([['INCR', 'w:authentication-failures:192.0.2.1']])
        return source.send(...call)
      },
    }
    try {
      const running = await importKeys({ ...options, isFinal: true, source: changing })
      expect(running).toMatchObject({ outcome: 'changing' })
      isWriting = false
      expect(await importKeys({ ...options, isFinal: true, source: changing })).toMatchObject({
        outcome: 'done',
      })
      const ended = await importKeys({ ...options, isFinal: true, source: changing })
      expect(ended).toEqual({ outcome: 'refused', why: 'ended' })
    } finally {
      close()
    }
  })

  test('a browser session is in the lane of its user, stays signed in, and ends with a logout before the last pass', async () => {
    const { source, options, close } = connected('s:')
    const { cluster: target } = options
    const now = () => Date.now()
    const sessionsOf = (redis: RedisConnection) =>
      createSessions({
        ...{ store: createSessionStore(redis, now), revocations: createRevocations(redis, now) },
        terms: { idleSeconds: 800, absoluteSeconds: 2_000, maxSessions: 3, roles: [] },
        ...{ audience: 'https://gateway.example', now },
      })
    const provider = { seal: createSeal('secret') }
    const findOn = async (reference: string) => {
      const record = await createReferenceStore(target).find(await credentialHash(reference))
      return record && principalOfRecord(record)
    }
    try {
      const opened: string[] = []
      for (const _ of [1, 2]) opened.push(await sessionsOf(source).open(LOGIN, provider, 'Browser'))
      const [kept = '', left = ''] = opened
      expect(await importKeys(options)).toMatchObject({ outcome: 'done' })
      const names = (await controlNode()).keys('s:{c}:*session*')
      expect(await names).toEqual([])
      const user = await findOn(kept)
      if (user === undefined) throw new Error('signed out')
      expect(await sessionsOf(target).list(user)).toHaveLength(2)
      const other = await findOn(left)
      const owner = { issuer: IDP, providerSubject: 'anne' }
      await sessionsOf(source).end(other?.tokenId ?? '', owner)
      expect(await importKeys({ ...options, isFinal: true })).toMatchObject({ outcome: 'done' })
      expect(await findOn(left)).toBeUndefined()
      expect(await sessionsOf(target).list(user)).toHaveLength(1)
      const renewed = (await sessionsOf(target).renew(kept, user)) ?? ''
      expect(await findOn(renewed)).toMatchObject({ subject: 'anne' })
    } finally {
      close()
    }
  })

  test('with --merge, the cluster keeps its own keys, and a revocation never ends earlier', async () => {
    const { options, close } = connected('m:')
    const [source, control] = [gateway.redis.direct, await controlNode()]
    /** Returns what the passes have changed, or why there was none. */
    async function run(merges: boolean) {
      const done = await importKeys({ ...options, merges })
      if (done.outcome === 'refused') return done.why
      const sum = (of: 'copied' | 'removed') => done.passes.reduce((all, pass) => all + pass[of], 0)
      return { copied: sum('copied'), removed: sum('removed') }
    }
    try {
      await source.set('m:cutoff:client:i:app', 100, 'EX', 50)
      await source.set('m:cutoff:client:i:web', 300)
      await source.zadd('m:clients', 0, 'b')
      await control.set('m:{c}:cutoff:client:i:app', 200, 'EX', 500)
      await control.zadd('m:{c}:clients', 0, 'a')
      expect(await run(false)).toBe('other_origin')
      expect(await control.exists('m:{c}:cutoff:client:i:web')).toBe(0)
      expect(await run(true)).toEqual({ copied: 2, removed: 0 })
      expect(await control.get('m:{c}:cutoff:client:i:app')).toBe('200')
      expect(await control.ttl('m:{c}:cutoff:client:i:app')).toBeGreaterThan(400)
      expect(await control.get('m:{c}:cutoff:client:i:web')).toBe('300')
      expect(await control.zrange('m:{c}:clients', 0, -1)).toEqual(['a', 'b'])
      // The source loses what both had, and what only it had.
      await source.del('m:cutoff:client:i:app', 'm:clients')
      await source.set('m:client:b', 'record')
      expect(await run(true)).toEqual({ copied: 1, removed: 0 })
      await source.del('m:client:b')
      expect(await run(false)).toBe('other_origin')
      expect(await run(true)).toEqual({ copied: 0, removed: 1 })
    } finally {
      close()
    }
  })

  test('another number of lanes, and a target or a source of another kind, are refused', async () => {
    const url = (lanes: number) => `${cluster.url}/?lanes=${lanes}`
    const lanes = await runImport([], { REDIS_URL: url(LANES * 2) })
    expect(lanes).toMatchObject({ code: 1, error: { code: 'misconfigured' } })
    expect(lanes.text).toContain(`set ?lanes=${LANES}`)
    const options = { final: false, dryRun: false, merge: false, json: true }
    for (const [variables, from, detail] of [
      [{ REDIS_URL: 'redis://127.0.0.1:1' }, undefined, /^REDIS_URL: /],
      [{ REDIS_URL: '' }, undefined, /^REDIS_URL: /],
      [{ REDIS_URL_FROM: '' }, undefined, /^REDIS_URL_FROM: /],
      [{ REDIS_URL_FROM: url(LANES) }, undefined, /^REDIS_URL_FROM: /],
      [{}, 'redis://:secret@127.0.0.1:1', /^--from must not contain a password(?!.*secret@)/],
    ] as const) {
      const env = environment(variables)
      const failed = importRedis({ ...options, ...(from && { from }), env })
      const message = expect.stringMatching(detail)
      await expect(failed).rejects.toMatchObject({ exitCode: 2, code: 'usage', message })
    }
    const none = await runImport(['--from', 'redis://127.0.0.1:1'], { REDIS_PREFIX: 'n:' })
    expect(none).toMatchObject({ code: 3, error: { code: 'redis_unavailable' } })
  })
})
