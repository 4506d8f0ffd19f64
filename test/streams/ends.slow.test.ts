/** Open responses, WebSockets and MCP streams end with the rights of their callers, on both runtimes. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createBanList } from '../../src/access/abuse/redis/bans.ts'
import { createRevocationLog } from '../../src/access/revocation/redis/revocation-log.ts'
import { tokenIdHash } from '../../src/access/token-id.ts'
import { ISSUER } from '../harness/issuer.ts'
import {
  isComplete,
  pendingCall,
  type Received,
  RUNTIMES,
  type StreamGateway,
  startStreamGateway,
} from './gateway.ts'
import { HALF } from './origin.ts'
import { MAX_FAILURES } from './policy.ts'

/** `recheckSeconds` of the routes. */
const RECHECK_MS = 1_000
/**
 * For the work of a machine that runs other tests. A stream that is not checked lives for minutes; how often
 * it is checked, the calls to Redis show.
 */
const MARGIN_MS = 15_000
/** Longer than a machine that runs other tests needs to open streams. No tolerance is added. */
const LIFE_SECONDS = 4

const nowSeconds = () => Math.floor(Date.now() / 1000)

describe.each(RUNTIMES)('on %s [S79]', (runtime) => {
  let gateway: StreamGateway
  beforeAll(async () => {
    gateway = await startStreamGateway(runtime)
  })
  afterAll(() => gateway?.close())

  /** Opens one stream of each kind. Resolves when each of them is open. */
  async function openAll(token: string, address?: string) {
    const options = { ...(address !== undefined && { address }) }
    const [events, download, trickle, chunks, call, server, webSocket] = await Promise.all([
      gateway.open('/events', token, options),
      gateway.open('/files/whole', token, options),
      gateway.open('/files/trickle', token, options),
      gateway.open('/files/chunks', token, options),
      gateway.open('/mcp', token, { ...options, ...pendingCall(7) }),
      gateway.open('/mcp', token, { ...options, headers: { Accept: 'text/event-stream' } }),
      gateway.openSocket('/events', token, address),
    ])
    const responses = { events, download, trickle, chunks, call, server }
    onTestFinished(() => {
      for (const response of Object.values(responses)) response.leave()
      webSocket.socket.terminate()
    })
    return { responses, webSocket }
  }

  type Opened = Awaited<ReturnType<typeof openAll>>

  /** Waits until all streams have ended, and checks how. Returns when the last one ended. */
  async function ended({ responses, webSocket }: Opened, code: string): Promise<number> {
    const { atMs, ...close } = await webSocket.closed
    expect(close).toEqual({ code: 1008, reason: code })
    const times = [atMs]
    for (const [name, response] of Object.entries(responses)) {
      if (name === 'call' || name === 'server') {
        await expect.poll(() => isComplete(response.text())).toBe(true)
        continue
      }
      times.push(await response.ended)
      expect(response.text()).toMatch(/^HTTP\/1\.1 200 /)
      expect([name, isComplete(response.text())]).toEqual([name, false])
    }
    const { call } = responses
    const data = /^data: (\{.*\})$/m.exec(call.text())?.[1] ?? '{}'
    expect(JSON.parse(data)).toMatchObject({ id: 7, error: { data: { code } } })
    return Math.max(...times)
  }

  const stillOpen = ({ text }: Received) => text().length

  test('responses that end before their first check cost no call to Redis but their admission', async () => {
    const token = await gateway.token()
    await gateway.open('/files/short', token)
    const before = gateway.redis.decisions()
    for (let count = 0; count < 5; count++)
      (await gateway.open('/files/short', token, { headers: { Connection: 'close' } })).leave()
    expect(gateway.redis.decisions() - before).toBe(5)
  })

  test('a short body of known length arrives whole, however the origin sends it', async () => {
    const token = await gateway.token()
    const get = async (path: string) =>
      fetch(gateway.url + path, { headers: { authorization: `Bearer ${token}` } })
    for (const path of ['/files/halves', '/finish/halves']) {
      const response = await get(path)
      expect(response.headers.get('content-length')).toBe(String(2 * HALF.length))
      expect(await response.text()).toBe(HALF + HALF)
    }
    const zipped = await get('/files/zipped')
    expect(zipped.headers.get('content-encoding')).toBe('gzip')
    expect(await zipped.text()).toBe(HALF)
  })

  test('a short body that the origin breaks off does not look complete', async () => {
    const broken = await gateway.open('/files/broken', await gateway.token())
    await broken.ended
    expect(broken.text()).toMatch(/^HTTP\/1\.1 200 /)
    expect(broken.text()).toContain(HALF)
    expect(isComplete(broken.text())).toBe(false)
  })

  test('every stream of a token ends when it expires, and what is cut does not look complete', async () => {
    const exp = nowSeconds() + LIFE_SECONDS
    const opened = await openAll(await gateway.token({ exp }))
    const lasting = await openAll(await gateway.token())
    const endedMs = await ended(opened, 'invalid_token')
    expect(endedMs - exp * 1_000).toBeLessThan(MARGIN_MS)
    expect(endedMs).toBeGreaterThanOrEqual(exp * 1_000)
    const { events } = lasting.responses
    const length = stillOpen(events)
    await expect.poll(() => stillOpen(events)).toBeGreaterThan(length)
    expect(lasting.webSocket.socket.readyState).toBe(1)
  })

  test('streams of a route that demands a recent login end when the login is too old', async () => {
    const endSeconds = nowSeconds() + LIFE_SECONDS
    const token = await gateway.token({ auth_time: endSeconds - 60 })
    const opened = await Promise.all(
      ['/recent/whole', '/recent/events'].map((path) => gateway.open(path, token)),
    )
    const socket = await gateway.openSocket('/recent/events', token)
    const other = await gateway.open('/events', token)
    onTestFinished(() => other.leave())
    const { code, reason, atMs } = await socket.closed
    expect([code, reason]).toEqual([1008, 'insufficient_user_authentication'])
    expect(atMs).toBeGreaterThanOrEqual(endSeconds * 1_000)
    for (const stream of opened) {
      await stream.ended
      expect(stream.text()).toMatch(/^HTTP\/1\.1 200 /)
      expect(isComplete(stream.text())).toBe(false)
    }
    const length = stillOpen(other)
    await expect.poll(() => stillOpen(other)).toBeGreaterThan(length)
    const again = await gateway.open('/recent/whole', token)
    expect(again.text()).toMatch(/^HTTP\/1\.1 401 /)
  })

  test('every stream ends soon after each kind of revocation and ban, and others stay open', async () => {
    const { rest, revocations } = gateway
    const at = () => ({ atSeconds: Date.now() / 1_000, ttlSeconds: 600 })
    const by = { issuer: ISSUER, issuers: [ISSUER], createdBy: 'olga' } as const
    const bans = createBanList(rest, Date.now)
    const cutoff = (kind: 'session' | 'client' | 'tenant' | 'subject', value: string) =>
      revocations.revokeBefore({ kind, issuer: ISSUER, value, ...at() })
    const ways = {
      token: async (id: string) =>
        revocations.revokeToken({
          tokenIdHash: await tokenIdHash(ISSUER, id),
          untilSeconds: nowSeconds() + 600,
        }),
      subject: (id: string) => cutoff('subject', id),
      session: (id: string) => cutoff('session', id),
      client: (id: string) => cutoff('client', id),
      tenant: (id: string) => cutoff('tenant', id),
      'subject, by an operator': (id: string) =>
        createRevocationLog(rest, Date.now).create({
          kind: 'subject',
          value: id,
          ...by,
          ttlSeconds: 600,
        }),
      'ban of the subject': (id: string) =>
        bans.create({ kind: 'subject', value: id, ...by, seconds: 600 }),
    }
    const callers = await Promise.all(
      Object.entries(ways).map(async ([name, revoke]) => {
        const id = crypto.randomUUID()
        const claims = { sub: id, jti: id, sid: id, client_id: id, tenant: id }
        return { name, id, revoke, opened: await openAll(await gateway.token(claims)) }
      }),
    )
    const others = await openAll(await gateway.token())
    const anonymous = await gateway.open('/public/events')
    onTestFinished(() => anonymous.leave())
    const revokedMs = Date.now()
    await Promise.all(callers.map(({ id, revoke }) => revoke(id)))
    for (const { name, opened } of callers) {
      const endedMs = await ended(opened, name.startsWith('ban') ? 'banned' : 'invalid_token')
      expect(endedMs - revokedMs, name).toBeLessThan(RECHECK_MS + MARGIN_MS)
    }
    for (const stream of [others.responses.events, anonymous]) {
      const length = stillOpen(stream)
      await expect.poll(() => stillOpen(stream)).toBeGreaterThan(length)
    }
    expect(others.webSocket.socket.readyState).toBe(1)
  })

  test('a ban of an address ends the streams of callers from there, and no anonymous stream', async () => {
    const address = '198.51.100.9'
    const opened = await openAll(await gateway.token(), address)
    const elsewhere = await gateway.open('/events', await gateway.token())
    const anonymous = await gateway.open('/public/events', undefined, { address })
    onTestFinished(() => {
      for (const one of [elsewhere, anonymous]) one.leave()
    })
    const by = { issuer: undefined, issuers: [], createdBy: 'olga' } as const
    await createBanList(gateway.rest, Date.now).create({
      kind: 'address',
      value: address,
      ...by,
      seconds: 600,
    })
    await ended(opened, 'banned')
    for (const stream of [elsewhere, anonymous]) {
      const length = stillOpen(stream)
      await expect.poll(() => stillOpen(stream)).toBeGreaterThan(length)
    }
  })

  test('the streams of an API key end when it expires and when it is revoked', async () => {
    const { apiKeys } = gateway
    const members = { name: 'robot', subject: 'robot', roles: ['reader'] }
    const short = await apiKeys.create({ ...members, expiresInSeconds: LIFE_SECONDS }, 'olga')
    const long = await apiKeys.create(members, 'olga')
    const expiring = await openAll(short.secret)
    const revoked = await openAll(long.secret)
    await apiKeys.end(long.key.id)
    await ended(revoked, 'invalid_token')
    await ended(expiring, 'invalid_token')
  })

  test('a response that the origin begins after a revocation does not reach the caller', async () => {
    const id = crypto.randomUUID()
    const token = await gateway.token({ sub: id })
    const late = await gateway.open('/late', token, { headers: { Connection: 'close' } })
    onTestFinished(() => {
      late.leave()
      gateway.origin.answerLate()
    })
    await expect.poll(() => gateway.origin.waiting()).toBe(1)
    await gateway.revocations.revokeBefore({
      kind: 'subject',
      issuer: ISSUER,
      value: id,
      atSeconds: Date.now() / 1_000,
      ttlSeconds: 600,
    })
    await expect.poll(late.text).toMatch(/^HTTP\/1\.1 401 /)
    gateway.origin.answerLate()
    await expect.poll(() => gateway.origin.waiting()).toBe(0)
    await late.ended
    expect(late.text()).not.toContain('late')
  })

  test.each([
    [
      'its token expires',
      async (id: string) => gateway.token({ sub: id, exp: nowSeconds() + LIFE_SECONDS }),
    ],
    ['its subject is revoked', async (id: string) => gateway.token({ sub: id })],
  ])(
    'a request with effects gets its answer, although %s before the answer',
    async (why, tokenOf) => {
      const id = crypto.randomUUID()
      const token = await tokenOf(id)
      const before = gateway.origin.executed.length
      const late = await gateway.open('/late', token, { method: 'POST', body: '{}' })
      const read = await gateway.open('/late', token)
      onTestFinished(() => {
        for (const one of [late, read]) one.leave()
        gateway.origin.answerLate()
      })
      await expect.poll(() => gateway.origin.executed.slice(before)).toContain('POST /late')
      if (why.includes('revoked'))
        await gateway.revocations.revokeBefore({
          kind: 'subject',
          issuer: ISSUER,
          value: id,
          atSeconds: Date.now() / 1_000,
          ttlSeconds: 600,
        })
      // The gateway has found out that the caller has no rights any more.
      await expect.poll(read.text).toMatch(/^HTTP\/1\.1 401 /)
      gateway.origin.answerLate()
      await expect.poll(late.text).toContain('late')
      expect(late.text()).toMatch(/^HTTP\/1\.1 200 /)
      expect(isComplete(late.text())).toBe(true)
      const executed = gateway.origin.executed.slice(before)
      expect(executed.filter((request) => request === 'POST /late')).toHaveLength(1)
    },
  )

  test('tokens that expire during the wait for the origin are no failed credentials of their address', async () => {
    const [sub, address] = [crypto.randomUUID(), '198.51.100.20']
    const exp = nowSeconds() + LIFE_SECONDS
    const late = await Promise.all(
      Array.from({ length: MAX_FAILURES }, async () =>
        gateway.open('/late', await gateway.token({ sub, exp }), { address }),
      ),
    )
    onTestFinished(() => {
      for (const one of late) one.leave()
      gateway.origin.answerLate()
    })
    for (const { text } of late) await expect.poll(text).toMatch(/^HTTP\/1\.1 401 /)
    const next = await gateway.open('/files/short', await gateway.token({ sub }), { address })
    next.leave()
    expect(next.text()).toMatch(/^HTTP\/1\.1 200 /)
  })

  test('a request with effects gets its answer, although Redis fails for longer than the grace', async () => {
    const token = await gateway.token()
    const before = gateway.origin.executed.length
    const path = '/impatient/late'
    const written = await gateway.open(path, token, { method: 'POST', body: '{}' })
    const read = await gateway.open(path, token)
    onTestFinished(() => {
      for (const one of [written, read]) one.leave()
      gateway.origin.answerLate()
    })
    await expect.poll(() => gateway.origin.waiting()).toBe(2)
    gateway.redis.setAnswering(false)
    try {
      await expect.poll(read.text).toMatch(/^HTTP\/1\.1 503 /)
      expect(read.text()).toContain('dependency_unavailable')
      gateway.origin.answerLate()
      await expect.poll(written.text).toContain('late')
      expect(written.text()).toMatch(/^HTTP\/1\.1 200 /)
      expect(isComplete(written.text())).toBe(true)
      expect(gateway.origin.executed.slice(before)).toContain(`POST ${path}`)
    } finally {
      gateway.redis.setAnswering(true)
    }
  })

  test('a download that may finish does so while its bytes pass, and ends when they stop', async () => {
    const id = crypto.randomUUID()
    const token = await gateway.token({ sub: id })
    const [whole, chunks, stalled, events] = await Promise.all(
      ['whole', 'chunks', 'stalled', 'events'].map((name) =>
        gateway.open(`/finish/${name}`, token, { headers: { Connection: 'close' } }),
      ),
    )
    for (const response of [whole, chunks, stalled, events])
      expect(response?.text()).toMatch(/^HTTP\/1\.1 200 /)
    await gateway.revocations.revokeBefore({
      kind: 'subject',
      issuer: ISSUER,
      value: id,
      atSeconds: Date.now() / 1_000,
      ttlSeconds: 600,
    })
    const complete = async (response: Received | undefined) => {
      await response?.ended
      return isComplete(response?.text() ?? '')
    }
    expect(await Promise.all([whole, chunks, stalled, events].map(complete))).toEqual([
      true,
      true,
      false,
      false,
    ])
  })

  test('a stream renews its slot while it lives, and frees it when it is ended', async () => {
    const id = crypto.randomUUID()
    const token = await gateway.token({ sub: id, jti: id })
    const first = await gateway.open('/slot/events', token)
    onTestFinished(() => first.leave())
    // Longer than the slot is held without a renewal.
    await new Promise((resolve) => setTimeout(resolve, 5_500))
    const second = await gateway.open('/slot/events', token)
    expect(second.text()).toMatch(/^HTTP\/1\.1 429 /)
    second.leave()
    await gateway.revocations.revokeToken({
      tokenIdHash: await tokenIdHash(ISSUER, id),
      untilSeconds: nowSeconds() + 600,
    })
    await first.ended
    const third = await gateway.open('/slot/events', await gateway.token({ sub: id }))
    onTestFinished(() => third.leave())
    expect(third.text()).toMatch(/^HTTP\/1\.1 200 /)
  })

  test('one call checks all streams of all callers', async () => {
    const ids = Array.from({ length: 60 }, () => crypto.randomUUID())
    const streams = await Promise.all(
      ids.map(async (jti, index) => {
        const sub = `caller-${index % 10}`
        return gateway.open('/events', await gateway.token({ sub, jti }))
      }),
    )
    onTestFinished(() => {
      for (const stream of streams) stream.leave()
    })
    const hashes = await Promise.all(ids.map((jti) => tokenIdHash(ISSUER, jti)))
    const checks = hashes.map(gateway.callsAbout)
    const [before, beforeMs] = [gateway.redis.decisions(), Date.now()]
    await new Promise((resolve) => setTimeout(resolve, 3 * RECHECK_MS))
    const calls = gateway.redis.decisions() - before
    const counts = checks.map((count) => count())
    // Three intervals, of ten callers. Each stream has a token of its own.
    const intervals = Math.max(3, Math.round((Date.now() - beforeMs) / RECHECK_MS))
    expect(calls).toBeLessThanOrEqual(10 * intervals)
    expect(Math.min(...counts)).toBeGreaterThanOrEqual(2)
  })

  test('an outage of Redis that ends in time cuts no stream, and a longer one cuts them', async () => {
    const sub = crypto.randomUUID()
    const token = await gateway.token({ sub })
    const events = await gateway.open('/events', token)
    const webSocket = await gateway.openSocket('/events', token)
    const call = await gateway.open('/mcp', token, pendingCall('a'))
    onTestFinished(() => {
      for (const response of [events, call]) response.leave()
      webSocket.socket.terminate()
    })
    gateway.redis.setAnswering(false)
    const failed = gateway.callsAbout(sub)
    try {
      // A call without a response is sent a second time.
      await expect.poll(failed, { interval: 5 }).toBeGreaterThanOrEqual(2)
      gateway.redis.setAnswering(true)
      await expect.poll(gateway.callsAbout(sub)).toBeGreaterThan(0)
      const length = stillOpen(events)
      await expect.poll(() => stillOpen(events)).toBeGreaterThan(length)
      expect(webSocket.socket.readyState).toBe(1)
      gateway.redis.setAnswering(false)
      const code = 'dependency_unavailable'
      expect(await webSocket.closed).toMatchObject({ code: 1008, reason: code })
      await events.ended
      expect(isComplete(events.text())).toBe(false)
      await expect.poll(call.text).toContain(`"data":{"code":"${code}"`)
    } finally {
      gateway.redis.setAnswering(true)
    }
  })
})
