import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { readLuaFiles } from '../../../dev/lua/embed.ts'
import { createBanList } from '../../../src/access/abuse/redis/bans.ts'
import { createViolationCounter } from '../../../src/access/abuse/redis/violations.ts'
import {
  createRevocationFeed,
  type FeedCursor,
  MAX_FEED_CHANGES,
  MAX_FEED_ENTRIES,
} from '../../../src/access/revocation/feed.ts'
import { readFeedReply } from '../../../src/access/revocation/redis/feed.ts'
import { createRevocationLog } from '../../../src/access/revocation/redis/revocation-log.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { revokedBeforeKey, revokedTokenKey } from '../../../src/access/revocation/revocation.ts'
import { createApiKeys } from '../../../src/access/tokens/redis/api-keys.ts'
import { createRefreshFamilies } from '../../../src/access/tokens/redis/refresh-families.ts'
import { Unavailable } from '../../../src/errors.ts'
import type { RedisConnection } from '../../../src/redis/connection.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { createRevocationFeedSource } from '../../harness/feed-source.ts'
import { ROOT } from '../../harness/process.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { GUARD_REDIS_PROTOCOLS } from '../../harness/redis-protocols.ts'

const NOW_MS = 1_795_183_974_000
const ISSUER = 'https://issuer.test'
const NOWHERE: FeedCursor = { position: '', mark: 0 }
/** Keys that admission reads, so a writer must report them. */
const DECIDES = /^pc:(revoked|cutoff|ban|observed-ban):/

const now = () => NOW_MS
const OPERATOR = { createdBy: 'olga' } as const
const SUBJECT = { kind: 'subject', value: 'alice', issuer: undefined, issuers: [ISSUER] } as const
const ADDRESS = { kind: 'address', value: '203.0.113.7', issuer: undefined, issuers: [] } as const
const BANS = { violations: 1, windowSeconds: 60, seconds: 60, maxSeconds: 60 }
const FAMILY = {
  session: {
    id: 'sid',
    grant: { subject: 'alice', client: 'app', roles: [], scopes: [], audiences: [ISSUER] },
    startedAtSeconds: NOW_MS / 1000,
    expiresAtSeconds: NOW_MS / 1000 + 600,
  },
  current: 'hash',
  previous: undefined,
  ended: false,
}

const stores = (rest: RedisConnection) => ({
  revocations: createRevocations(rest, now),
  log: createRevocationLog(rest, now),
  bans: createBanList(rest, now),
  violations: createViolationCounter(rest, now),
  families: createRefreshFamilies(rest),
  apiKeys: createApiKeys({ redis: rest, publicUrl: ISSUER, now }),
})
type Stores = ReturnType<typeof stores>

const familyEnd = async () => ({
  revokedBeforeKey: await revokedBeforeKey(DEFAULT_KEYS, 'session', ISSUER, 'sid'),
  revokedBeforeSeconds: NOW_MS / 1000,
  revokedBeforeTtlSeconds: 600,
})
const revokeBefore = (kind: 'session' | 'client' | 'tenant') => ({
  kind,
  issuer: ISSUER,
  value: 'it',
  atSeconds: NOW_MS / 1000,
  ttlSeconds: 60,
})

/** Each way to change a key that admission reads: the preparation, and the change. */
const WRITERS: Readonly<Record<string, (stores: Stores) => Promise<() => Promise<unknown>>>> = {
  'a token that its client revokes': async ({ revocations }) => {
    return () => revocations.revokeToken({ tokenIdHash: 'hash', untilSeconds: NOW_MS / 1000 + 60 })
  },
  'a cutoff':
    async ({ revocations }) =>
    () =>
      revocations.revokeBefore(revokeBefore('client')),
  'a second cutoff': async ({ revocations }) => {
    await revocations.revokeBefore(revokeBefore('tenant'))
    return () =>
      revocations.revokeBefore({ ...revokeBefore('tenant'), atSeconds: NOW_MS / 1000 + 1 })
  },
  'a cutoff that is lifted': async ({ revocations }) => {
    await revocations.revokeBefore(revokeBefore('session'))
    return () => revocations.liftRevokedBefore(revokeBefore('session'))
  },
  'a revocation by an operator': async ({ log }) => {
    const order = { ...SUBJECT, ...OPERATOR, issuers: [ISSUER, 'https://b.test'], ttlSeconds: 60 }
    return () => log.create(order)
  },
  'a token that an operator revokes': async ({ log }) => {
    return () => log.create({ ...SUBJECT, ...OPERATOR, kind: 'token', ttlSeconds: 60 })
  },
  'a revocation that an operator removes': async ({ log }) => {
    const { id } = await log.create({ ...SUBJECT, ...OPERATOR, ttlSeconds: 60 })
    return () => log.remove(id)
  },
  'a ban of a subject': async ({ bans }) => {
    return () => bans.create({ ...SUBJECT, ...OPERATOR, seconds: 60 })
  },
  'a ban of an address that is lifted': async ({ bans }) => {
    const { id } = await bans.create({ ...ADDRESS, ...OPERATOR, seconds: 60 })
    return () => bans.remove(id)
  },
  'an automatic ban of an address': async ({ violations }) => {
    const offender = { kind: 'address', value: ADDRESS.value } as const
    return () =>
      violations.count(offender, 'credential', { ...BANS, mode: 'enforce', refuses: 'everything' })
  },
  'a ban of a subject in observe mode': async ({ violations }) => {
    const offender = { kind: 'subject', issuer: ISSUER, value: 'alice' } as const
    return () =>
      violations.count(offender, 'credential', { ...BANS, mode: 'observe', refuses: 'everything' })
  },
  'a session that ends': async ({ families }) => {
    await families.open('family', FAMILY, 600)
    const end = await familyEnd()
    return () => families.end('family', end)
  },
  'a refresh token that is used twice': async ({ families }) => {
    await families.open('family', FAMILY, 600)
    const end = await familyEnd()
    const request = {
      familyHash: 'family',
      presented: 'stolen',
      successor: 'next',
      nonce: 'nonce',
      nowMs: NOW_MS,
      graceMs: 0,
      issuedAtSeconds: NOW_MS / 1000,
      startedAtSeconds: NOW_MS / 1000,
      end,
      revokedBeforeKeys: [],
    }
    return () => families.rotate(request)
  },
  'an API key that is rotated': async ({ apiKeys }) => {
    const { key } = await apiKeys.create({ name: 'robot', subject: 'robot' }, 'olga')
    return () => apiKeys.rotate(key.id)
  },
  'an API key that is deleted': async ({ apiKeys }) => {
    const { key } = await apiKeys.create({ name: 'robot', subject: 'robot' }, 'olga')
    return () => apiKeys.end(key.id)
  },
}

describe.each(GUARD_REDIS_PROTOCOLS)('the revocation feed ($name)', ({ prefer, connect }) => {
  let redis: TestRedis
  let rest: RedisConnection
  beforeAll(async () => {
    redis = await startTestRedis(prefer)
    rest = connect(redis)
  })
  afterAll(() => redis.close())
  beforeEach(() => redis.direct.flushall())

  const since = (cursor: FeedCursor) => createRevocationFeedSource(rest).since(cursor)
  const cursorNow = async (): Promise<FeedCursor> => ({ ...(await since(NOWHERE)), mark: 0 })
  const revoke = (name: string) =>
    stores(rest).revocations.revokeToken({ tokenIdHash: name, untilSeconds: NOW_MS / 1000 + 60 })
  const tokenKeys = (...names: string[]) => names.map((name) => revokedTokenKey(DEFAULT_KEYS, name))

  /** Every key that admission reads, with its value. */
  async function deciding(): Promise<Map<string, string | null>> {
    const keys = (await redis.direct.keys('*')).filter((key) => DECIDES.test(key)).sort()
    return new Map(
      await Promise.all(keys.map(async (key) => [key, await redis.direct.get(key)] as const)),
    )
  }

  test.each(Object.entries(WRITERS))(
    '%s is reported with exactly its changed keys',
    async (_, given) => {
      const change = await given(stores(rest))
      const before = await deciding()
      const cursor = await cursorNow()
      await change()
      const after = await deciding()
      const changed = [...new Set([...before.keys(), ...after.keys()])].filter(
        (key) => before.get(key) !== after.get(key),
      )
      expect(changed.length).toBeGreaterThan(0)
      const reply = await since(cursor)
      expect([...(reply.changed ?? [])].sort()).toEqual(changed.sort())
      expect(await redis.direct.ttl(DEFAULT_KEYS.feed)).toBeGreaterThan(3_600)
    },
  )

  test('an operation without an effect is not reported', async () => {
    const { log, apiKeys, violations } = stores(rest)
    const cursor = await cursorNow()
    await log.remove('0190a6b4-0000-7000-8000-000000000001')
    await apiKeys.create({ name: 'robot', subject: 'robot' }, 'olga')
    const offender = { kind: 'address', value: ADDRESS.value } as const
    await violations.count(offender, 'credential', {
      ...BANS,
      violations: 2,
      mode: 'enforce',
      refuses: 'everything',
    })
    expect(await since(cursor)).toEqual({ since: cursor, position: cursor.position, changed: [] })
  })

  test('each reader gets the changes since its own position, in order', async () => {
    const first = await cursorNow()
    await revoke('a')
    const second = { ...(await since(first)), mark: 0 }
    await revoke('b')
    await revoke('a')
    expect((await since(first)).changed).toEqual(tokenKeys('a', 'b', 'a'))
    expect((await since(second)).changed).toEqual(tokenKeys('b', 'a'))
  })

  test('a feed that was lost and restarted counts as another feed', async () => {
    await revoke('a')
    const cursor = await cursorNow()
    await redis.direct.del(DEFAULT_KEYS.feed)
    expect((await since(cursor)).changed).toBeUndefined()
    await redis.direct.del(DEFAULT_KEYS.feed)
    // The same change in the same tick of a server that counts milliseconds would give the same position.
    await revoke('b')
    const reply = await since(cursor)
    expect(reply).toMatchObject({ changed: undefined })
    expect(reply.position).not.toBe(cursor.position)
  })

  test('a server that lost its last writes and received others does not count as the same feed', async () => {
    await revoke('a')
    const backup = await redis.direct.hgetall(DEFAULT_KEYS.feed)
    await revoke('lost')
    const cursor = await cursorNow()
    await redis.direct.del(DEFAULT_KEYS.feed)
    await redis.direct.hset(DEFAULT_KEYS.feed, backup)
    expect((await since(cursor)).changed).toBeUndefined()
    await revoke('b')
    expect((await since(cursor)).changed).toBeUndefined()
    await revoke('c')
    expect((await since(cursor)).changed).toBeUndefined()
  })

  test('a reader that is too far behind, or has an unknown position, gets no list of changes', async () => {
    const cursor = await cursorNow()
    for (let n = 0; n < MAX_FEED_CHANGES; n++) await revoke('a')
    expect((await since(cursor)).changed).toHaveLength(MAX_FEED_CHANGES)
    await revoke('a')
    expect((await since(cursor)).changed).toBeUndefined()
    const present = (await cursorNow()).position
    for (const position of ['x', '1 2', present.replace(/ (\d+) /, ' 9999999 '), '1.1 -5 1.1'])
      expect((await since({ position, mark: 0 })).changed).toBeUndefined()
  })

  test('the feed is bounded by count and by age, and its last position never expires', async () => {
    await revoke('a')
    const [epoch, , stamp] = (await cursorNow()).position.split(' ')
    const old = `1000000000.5 ${revokedTokenKey(DEFAULT_KEYS, 'old')}`
    const many = MAX_FEED_ENTRIES + 20
    await redis.direct.del(DEFAULT_KEYS.feed)
    const entries = Array.from({ length: many }, (_, n) => [String(n), n < 10 ? old : `${stamp} k`])
    await redis.direct.hset(DEFAULT_KEYS.feed, Object.fromEntries(entries))
    const head = `${epoch} ${many - 1} ${stamp}`
    await redis.direct.hset(DEFAULT_KEYS.feed, { head, oldest: '0' })
    for (let n = 0; n < 10; n++) await revoke('b')
    expect(await redis.direct.hlen(DEFAULT_KEYS.feed)).toBe(MAX_FEED_ENTRIES + 2)
    expect((await since({ position: head, mark: 0 })).changed).toEqual(
      tokenKeys(...Array.from({ length: 10 }, () => 'b')),
    )

    // After a long idle time the last entry is old, but a reader at that position has missed
    // nothing.
    await redis.direct.del(DEFAULT_KEYS.feed)
    const quiet = '1000000000.1 1 1000000000.7'
    const values = { head: quiet, oldest: '0', 0: '1000000000.1', 1: '1000000000.7 k' }
    await redis.direct.hset(DEFAULT_KEYS.feed, values)
    await revoke('c')
    expect((await since({ position: quiet, mark: 0 })).changed).toEqual(tokenKeys('c'))
    expect(await redis.direct.hexists(DEFAULT_KEYS.feed, '0')).toBe(0)
  })

  test.each(['string', 'list', 'foreign hash'])(
    'a %s in its place is replaced: revocations are written, and readers clear their caches',
    async (kind) => {
      const cursor = await cursorNow()
      await redis.direct.del(DEFAULT_KEYS.feed)
      if (kind === 'string') await redis.direct.set(DEFAULT_KEYS.feed, 'x')
      else if (kind === 'list') await redis.direct.rpush(DEFAULT_KEYS.feed, 'x')
      else await redis.direct.hset(DEFAULT_KEYS.feed, { head: 'x', 1: 'x' })
      expect((await since(cursor)).changed).toBeUndefined()
      await redis.direct.del(DEFAULT_KEYS.feed)
      await redis.direct.set(DEFAULT_KEYS.feed, 'x')
      await revoke('a')
      expect(await redis.direct.get(revokedTokenKey(DEFAULT_KEYS, 'a'))).toBe('1')
      expect((await since(cursor)).changed).toBeUndefined()
    },
  )

  test('a full Redis refuses new revocations, and still removes and reports', async ({ skip }) => {
    if (redis.kind === 'embedded') skip('the embedded Redis has no end of memory')
    const { revocations, bans } = stores(rest)
    await revocations.revokeBefore(revokeBefore('client'))
    const { id } = await bans.create({ ...ADDRESS, ...OPERATOR, seconds: 60 })
    const cursor = await cursorNow()
    await redis.direct.config('SET', 'maxmemory', 1)
    try {
      await expect(revoke('a')).rejects.toBeInstanceOf(Unavailable)
      await expect(revocations.revokeBefore(revokeBefore('tenant'))).rejects.toBeInstanceOf(
        Unavailable,
      )
      expect((await since(cursor)).changed).toEqual([])
      await revocations.liftRevokedBefore(revokeBefore('client'))
      expect(await bans.remove(id)).toBe(true)
      expect((await since(cursor)).changed).toHaveLength(2)
    } finally {
      await redis.direct.config('SET', 'maxmemory', 0)
    }
    expect(await deciding()).toEqual(new Map())
  })

  test('a cached result remains valid until one of its keys is written', async () => {
    const feed = createRevocationFeed({ maxStalenessMs: 1_000 })
    const source = createRevocationFeedSource(rest)
    const mark = feed.update(await source.since(feed.cursor), 0)
    const keys = tokenKeys('a', 'b')
    expect(feed.holds(mark, keys, 0)).toBe(true)
    await revoke('c')
    feed.update(await source.since(feed.cursor), 10)
    expect(feed.holds(mark, keys, 10)).toBe(true)
    await revoke('b')
    expect(feed.holds(mark, keys, 1_009)).toBe(true)
    expect(feed.holds(mark, keys, 1_010)).toBe(false)
    feed.update(await source.since(feed.cursor), 20)
    expect(feed.holds(mark, keys, 20)).toBe(false)
    expect(feed.holds(mark, tokenKeys('a'), 20)).toBe(true)
  })
})

describe('replies of the feed', () => {
  test.each([
    ['nothing', null],
    ['text in place of a list', 'x'],
    ['an empty list', []],
    ['no position', [1, 1]],
    ['no second element', ['1.1 0 1.1']],
    ['an invalid second element', ['1.1 0 1.1', 2]],
    ['a key that is not text', ['1.1 0 1.1', 1, 5]],
    ['keys without a known position', ['1.1 0 1.1', 0, 'pc:revoked:a']],
    ['a known position without a name', ['', 1]],
  ])('%s is an outage', (_, reply) => {
    expect(() => readFeedReply(reply, NOWHERE)).toThrow(Unavailable)
  })
})

describe('every writer reports to the feed', () => {
  const folder = join(ROOT, 'src')
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .sort()
  const textOf = (path: string) => readFileSync(join(folder, path), 'utf8')
  const using = (pattern: RegExp) => files.filter((path) => pattern.test(textOf(path)))

  test('only one script builds names of keys that admission reads, and it writes none of them', () => {
    const prefixes = /\b(REVOKED_TOKEN|REVOKED_BEFORE|ADDRESS_BAN|SUBJECT_BAN)_PREFIX\b/
    const scripts = readLuaFiles(folder).scripts
    const named = scripts.filter((path) => prefixes.test(readFileSync(path, 'utf8')))
    expect(named.map((path) => relative(folder, path))).toEqual([
      'access/admission/redis/admit-reference.lua',
    ])
    const written = /call\(?'?,? ?'(SET|DEL|GETDEL|GETEX|EXPIRE|INCR|APPEND|RENAME)[^)]*\)/g
    const writes = readFileSync(named[0] as string, 'utf8').match(written) ?? []
    expect(writes.filter((text) => /cutoff|revoked|ban/i.test(text))).toEqual([])
  })

  test('every script with the feed among its keys appends the changes or reads them', () => {
    const { scripts, sourceOf } = readLuaFiles(folder)
    const withFeed = scripts.filter((path) => /\bfeed_head\(/.test(sourceOf(path)))
    const calls =
      /^(?!local function).*\b(append_\w+|add_owner|remove_owner|extend_cutoff|end_family|end_secrets|feed_head)\(/m
    expect(withFeed.length).toBeGreaterThan(8)
    for (const path of withFeed) {
      const own = readFileSync(path, 'utf8')
      expect(own.match(calls)?.[0] ?? /pcall\(feed_head/.exec(own)?.[0], path).toBeDefined()
    }
  })

  test('each store that builds such a key reports to the feed, or only reads the key', () => {
    const knowing = using(
      /\b(revokedTokenKey|revokedBeforeKey|addressBanKey|subjectBanKey|deriveBanKeys|keysReadBy)\b/,
    )
    const stores = knowing.filter((path) => /\/redis\/|(?:^|\/)routes\//.test(path))
    const writing = stores.filter((path) =>
      /\b((?:keys|names)\.feed|withOwners|createOwnerList)\b/.test(textOf(path)),
    )
    expect(writing).toEqual([
      'access/abuse/redis/bans.ts',
      'access/abuse/redis/violations.ts',
      'access/revocation/redis/revocation-log.ts',
      'access/revocation/redis/revocations.ts',
      'access/tokens/redis/api-keys.ts',
      'access/tokens/redis/refresh-families.ts',
      'features/authorization-code/redis/authorization-codes.ts',
      'features/signals/redis/signal-store.ts',
    ])
    expect(stores.filter((path) => !writing.includes(path))).toEqual([
      'features/authorization-server/redis/client-logins.ts',
    ])
    const logins = textOf('features/authorization-server/redis/client-logins.ts')
    expect(logins.match(/\brevokedBeforeKeys\.map.*/g)).toEqual([
      "revokedBeforeKeys.map((key) => ['GET', key]),",
      expect.stringContaining('secondOrNull'),
    ])
  })
})
