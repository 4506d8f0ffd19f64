/** The contract of the stores of admission, for every adapter. */
import { beforeEach, expect, test } from 'vitest'
import {
  addressBanKey,
  type BanKey,
  listSubjectBans,
  observedBan,
  subjectBanKey,
} from '../../../src/access/abuse/ban.ts'
import type { LimitRequest } from '../../../src/access/admission/limit.ts'
import { limitKeyOf } from '../../../src/access/admission/limit-key.ts'
import type {
  AdmissionFacts,
  AdmissionQuery,
  AdmissionStore,
  ReferenceLimit,
  ReferenceQuery,
} from '../../../src/access/admission/store.ts'
import type { Principal } from '../../../src/access/principal.ts'
import {
  deriveRevocationKeys,
  NOTHING_REVOCABLE,
  type Revocations,
} from '../../../src/access/revocation/revocation.ts'
import { tokenIdHash } from '../../../src/access/token-id.ts'
import type { ReferenceRecord, ReferenceStore } from '../../../src/access/tokens/reference.ts'
import {
  ADDRESS,
  GATEWAY,
  nowSeconds,
  principal,
  recordOf,
  stored,
  limitOf as windowOf,
} from './callers.ts'

export interface TestedStores {
  readonly store: AdmissionStore
  readonly revocations: Revocations
  readonly references: ReferenceStore
  /** Writes the end of a ban, in seconds since the epoch. */
  ban(key: string, untilSeconds: number): Promise<void>
}

/** Returns a limit of a party of its own, whose window may be in another lane of a cluster. */
function limitOf(rule: Parameters<typeof windowOf>[0] = {}): LimitRequest {
  const limit = windowOf(rule)
  return { ...limit, owner: limit.key }
}

/** Declares the tests. `open` returns empty stores with the clock of the machine. */
export function admissionContract(open: () => Promise<TestedStores>): void {
  let stores: TestedStores
  beforeEach(async () => {
    stores = await open()
  })

  function consult(query: Partial<AdmissionQuery>): Promise<AdmissionFacts> {
    const nothing = { revocation: NOTHING_REVOCABLE, bans: [], limits: [], nowMs: Date.now() }
    return stores.store.consult({ ...nothing, ...query })
  }
  async function keysOf(who: Principal) {
    const bans: BanKey[] = [
      { by: 'address', key: await addressBanKey(stores.store.keys, ADDRESS) },
      { by: 'subject', key: await subjectBanKey(stores.store.keys, who.issuer, who.subject) },
    ]
    const revocation = await deriveRevocationKeys(stores.store.keys, who)
    return { caller: who.subject, revocation, bans }
  }
  /** Returns the units that are left, without counting a request. */
  async function leftOf(limit: LimitRequest): Promise<unknown> {
    const probe = { ...limit, rule: { ...limit.rule, cost: limit.rule.limit } }
    const other = limitOf({ limit: 1 })
    await consult({ limits: [other] })
    // The exhausted limit refuses, so nothing is taken from the other one.
    const { limits } = await consult({ limits: [other, probe] })
    return remainingOf(limits[1])
  }
  const remainingOf = (state: unknown) => (state as { remaining?: number } | undefined)?.remaining

  test('a caller without any record is not refused, and its request is counted', async () => {
    const limit = limitOf({ limit: 3 })
    const facts = await consult({ ...(await keysOf(principal())), limits: [limit] })
    expect(facts).toMatchObject({ tokenRevoked: false, proofUsed: false })
    const { revokedBeforeSeconds, bannedUntilSeconds } = facts
    expect([...revokedBeforeSeconds, ...bannedUntilSeconds].filter(isPresent)).toEqual([])
    expect(facts.limits).toMatchObject([{ limit: 3, remaining: 2, admitted: true }])
  })

  test('a request takes its cost from all limits, or from none', async () => {
    const [wide, narrow] = [limitOf({ limit: 9, cost: 2 }), limitOf({ limit: 1 })]
    const first = await consult({ limits: [wide, narrow] })
    expect(first.limits).toMatchObject([
      { remaining: 7, admitted: true },
      { remaining: 0, admitted: true },
    ])
    const second = await consult({ limits: [wide, narrow] })
    expect(second.limits).toMatchObject([
      { remaining: 7, admitted: true },
      { remaining: 0, admitted: false },
    ])
    expect(await leftOf(wide)).toBe(7)
  })

  test('an exhausted limit in observe mode refuses nothing', async () => {
    const [wide, observed] = [limitOf({ limit: 9 }), limitOf({ limit: 1, mode: 'observe' })]
    await consult({ limits: [wide, observed] })
    const { limits } = await consult({ limits: [wide, observed] })
    expect(limits).toMatchObject([{ remaining: 7 }, { remaining: 0, admitted: false }])
  })

  test('an exhausted limit reports when it has room again', async () => {
    const limit = limitOf({ limit: 1, windowSeconds: 60 })
    const beforeMs = Date.now()
    await consult({ limits: [limit] })
    const { limits } = await consult({ limits: [limit] })
    const resetMs = (limits[0] as { resetMs: number }).resetMs
    // The clocks of the machine and of the store differ by rounding.
    expect(resetMs).toBeGreaterThanOrEqual(beforeMs + 59_990)
    expect(resetMs).toBeLessThanOrEqual(Date.now() + 60_010)
  })

  test('100 concurrent requests at a limit of 10 are 10 admitted ones [R15]', async () => {
    const limit = limitOf({ limit: 10 })
    const all = await Promise.all(Array.from({ length: 100 }, () => consult({ limits: [limit] })))
    const admitted = all.filter(
      ({ limits: [state] }) => state && 'admitted' in state && state.admitted,
    )
    expect(admitted.length).toBe(10)
  })

  test('a revoked token is reported, and its request costs nothing', async () => {
    const who = principal()
    const limit = limitOf()
    await stores.revocations.revokeToken({
      tokenIdHash: who.tokenIdHash ?? '',
      untilSeconds: nowSeconds() + 60,
    })
    const facts = await consult({ ...(await keysOf(who)), limits: [limit] })
    expect(facts.tokenRevoked).toBe(true)
    expect(facts.limits.filter(isPresent)).toEqual([])
    expect(await leftOf(limit)).toBe(3)
  })

  test.each(['session', 'subject', 'client', 'tenant'] as const)(
    'a cutoff by %s refuses tokens issued up to its second, and costs nothing [S33]',
    async (kind) => {
      const atSeconds = nowSeconds()
      const old = principal({ issuedAtSeconds: atSeconds })
      const later = { ...old, tokenIdHash: 'later', issuedAtSeconds: atSeconds + 1 }
      const limit = limitOf()
      await stores.revocations.revokeBefore({
        kind,
        issuer: old.issuer,
        value: old[kind] ?? '',
        atSeconds,
        ttlSeconds: 600,
      })
      const refused = await consult({ ...(await keysOf(old)), limits: [limit] })
      expect(refused.revokedBeforeSeconds.filter(isPresent)).toEqual([atSeconds])
      expect(refused.limits.filter(isPresent)).toEqual([])
      const admitted = await consult({ ...(await keysOf(later)), limits: [limit] })
      expect(admitted.limits).toMatchObject([{ remaining: 2, admitted: true }])
    },
  )

  test('an earlier cutoff never replaces a later one, and a cutoff can be lifted', async () => {
    const who = principal()
    const of = { kind: 'subject', issuer: who.issuer, value: who.subject } as const
    const atSeconds = nowSeconds()
    await stores.revocations.revokeBefore({ ...of, atSeconds, ttlSeconds: 600 })
    await stores.revocations.revokeBefore({ ...of, atSeconds: 1, ttlSeconds: 5 })
    const keys = await keysOf(who)
    expect((await consult(keys)).revokedBeforeSeconds.filter(isPresent)).toEqual([atSeconds])
    await stores.revocations.liftRevokedBefore(of)
    expect((await consult(keys)).revokedBeforeSeconds.filter(isPresent)).toEqual([])
  })

  test('a ban in force costs nothing, and a ban that has ended refuses nothing', async () => {
    const who = principal()
    const keys = await keysOf(who)
    const [limit, until] = [limitOf(), nowSeconds() + 100]
    await stores.ban(keys.bans[1]?.key ?? '', until)
    const banned = await consult({ ...keys, limits: [limit] })
    expect(banned.bannedUntilSeconds.filter(isPresent)).toEqual([until])
    expect(banned.limits.filter(isPresent)).toEqual([])
    const later = await consult({ ...keys, limits: [limit], nowMs: until * 1000 })
    expect(later.limits).toMatchObject([{ remaining: 2, admitted: true }])
  })

  test('a ban in observe mode is reported, and refuses nothing', async () => {
    const keys = await keysOf(principal())
    const observedBans = keys.bans.map((ban) => observedBan(stores.store.keys, ban))
    const until = nowSeconds() + 100
    await stores.ban(observedBans[0]?.key ?? '', until)
    const facts = await consult({ ...keys, observedBans, limits: [limitOf()] })
    expect(facts.observedUntilSeconds.filter(isPresent)).toEqual([until])
    expect(facts.limits).toMatchObject([{ admitted: true }])
  })

  test('a proof of possession is accepted once, and a replay costs nothing', async () => {
    const proof = { replayId: crypto.randomUUID(), replayTtlSeconds: 60 }
    const limit = limitOf()
    expect(await consult({ proof, limits: [limit] })).toMatchObject({ proofUsed: false })
    const replay = await consult({ proof, limits: [limit] })
    expect(replay.proofUsed).toBe(true)
    expect(replay.limits.filter(isPresent)).toEqual([])
    expect(await leftOf(limit)).toBe(2)
  })

  test('a proof of possession of a banned caller is not used', async () => {
    const proof = { replayId: crypto.randomUUID(), replayTtlSeconds: 60 }
    const keys = await keysOf(principal())
    const until = nowSeconds() + 100
    await stores.ban(keys.bans[0]?.key ?? '', until)
    await consult({ ...keys, proof })
    expect(await consult({ ...keys, proof, nowMs: until * 1000 })).toMatchObject({
      proofUsed: false,
    })
  })

  /** Resolves a reference with the limit `standard` of its subject and one of the address. */
  async function resolve(hash: string, query: Partial<ReferenceQuery> = {}) {
    const limits: ReferenceLimit[] = [
      { rule: limitOf({ name: 'standard' }).rule, window: { by: 'subject' } },
      {
        rule: limitOf({ name: 'address' }).rule,
        window: { key: 'address:address:192.0.2.1', owner: ADDRESS },
      },
    ]
    return stores.store.resolve({
      reference: { hash },
      audience: GATEWAY,
      thumbprint: undefined,
      addressBan: await addressBanKey(stores.store.keys, ADDRESS),
      limits,
      proof: undefined,
      nowMs: Date.now(),
      ...query,
    })
  }
  const keep = async (record: Partial<ReferenceRecord> = {}) => {
    const made = recordOf(record)
    const { hash } = await stored(stores.references, made)
    return { hash, record: made }
  }
  const ownWindow = async ({ issuer, subject, tenant }: ReferenceRecord) =>
    limitKeyOf({ name: 'standard', by: 'subject' }, { issuer, value: subject, tenant })

  test('a reference has the record that was stored, until it is removed', async () => {
    const { hash, record } = await keep()
    expect(await stores.references.find(hash)).toEqual(record)
    expect((await resolve(hash)).record).toEqual(record)
    await stores.references.remove(hash)
    expect((await resolve(hash)).record).toBeUndefined()
  })

  test('a reference counts in the windows of its subject, as a token of the subject does', async () => {
    const { hash, record } = await keep()
    const key = await ownWindow(record)
    const { limits } = await resolve(hash)
    expect(limits).toMatchObject([
      { key, state: { remaining: 2, admitted: true } },
      { key: 'address:address:192.0.2.1', state: { remaining: 2, admitted: true } },
    ])
    const { rule } = limitOf({ name: 'standard' })
    const again = { rule, key, owner: record.subject }
    expect((await consult({ limits: [again] })).limits).toMatchObject([{ remaining: 1 }])
  })

  test.each([
    ['is unknown', {}, {}],
    ['has expired', { expiresAtSeconds: nowSeconds() - 60, issuedAtSeconds: 1 }, {}],
    ['is for another audience', { audiences: ['https://elsewhere.test'] }, {}],
    ['is bound to a key that the caller did not prove', { confirmation: 'a'.repeat(43) }, {}],
    ['is not bound to the key that the caller proved', {}, { thumbprint: 'b'.repeat(43) }],
  ])('a reference that %s counts only for the address', async (name, record, query) => {
    const { hash } = name === 'is unknown' ? { hash: 'unknown' } : await keep(record)
    const proof = { replayId: crypto.randomUUID(), replayTtlSeconds: 60 }
    const { limits } = await resolve(hash, { ...query, proof })
    expect(limits.filter(isPresent)).toMatchObject([{ key: 'address:address:192.0.2.1' }])
    // The proof is unused: it belongs to no valid credential.
    expect(await consult({ proof })).toMatchObject({ proofUsed: false })
  })

  test('the principal of a reference is checked for every revocation and ban', async () => {
    const { hash, record } = await keep()
    const { issuer, tokenIssuer, tokenId, subject, client, tenant, session } = record
    const who = principal({
      issuer,
      tokenIssuer,
      subject,
      client,
      tenant,
      session,
      tokenId,
      tokenIdHash: await tokenIdHash(tokenIssuer, tokenId),
    })
    const { revocation } = await keysOf(who)
    const { read } = await resolve(hash)
    const names = revocation.revokedBefore.map(({ key }) => key)
    const bans = [
      await addressBanKey(stores.store.keys, ADDRESS),
      ...(await listSubjectBans(stores.store.keys, who)).map(({ key }) => key),
    ]
    expect([...read.keys()].sort()).toEqual([revocation.token, ...names, ...bans].sort())
    expect([...read.values()].filter(isPresent)).toEqual([])
  })

  test('a caller without a tenant costs no key of a tenant, and one with a tenant five more [S88]', async () => {
    const { tenant: _, ...record } = recordOf()
    const without = await stored(stores.references, record)
    const within = await keep()
    const readBy = async (hash: string) => [...(await resolve(hash)).read.keys()]
    const [few, many] = [await readBy(without.hash), await readBy(within.hash)]
    expect(few.filter((key) => key.includes('acme'))).toEqual([])
    // The cutoffs of the tenant itself, under two issuers, were read before.
    expect(many).toHaveLength(few.length + 2 + 5)
  })

  test('a ban within a tenant refuses its members alone [S88]', async () => {
    const { hash, record } = await keep()
    const { issuer, subject, tenant } = record
    const other = await keep({ issuer, subject, tenant: 'globex' })
    const key = await subjectBanKey(stores.store.keys, issuer, subject, 'enforce', tenant)
    await stores.ban(key, nowSeconds() + 100)
    expect((await resolve(hash)).read.get(key)).toBeGreaterThan(nowSeconds())
    expect((await resolve(hash)).limits.filter(isPresent)).toEqual([])
    expect((await resolve(other.hash)).limits.filter(isPresent)).toHaveLength(2)
  })

  test.each(['token', 'subject', 'ban'] as const)(
    'a reference that is refused by its %s costs nothing, and uses no proof',
    async (by) => {
      const { hash, record } = await keep({ issuedAtSeconds: nowSeconds() })
      const { issuer, tokenIssuer, tokenId, subject } = record
      const until = nowSeconds() + 100
      if (by === 'token')
        await stores.revocations.revokeToken({
          tokenIdHash: await tokenIdHash(tokenIssuer, tokenId),
          untilSeconds: until,
        })
      else if (by === 'subject')
        await stores.revocations.revokeBefore({
          kind: 'subject',
          issuer,
          value: subject,
          atSeconds: nowSeconds(),
          ttlSeconds: 600,
        })
      else await stores.ban(await subjectBanKey(stores.store.keys, issuer, subject), until)
      const proof = { replayId: crypto.randomUUID(), replayTtlSeconds: 60 }
      const facts = await resolve(hash, { proof })
      expect([...facts.read.values()].filter(isPresent).length).toBe(1)
      expect(facts.limits.filter(isPresent)).toEqual([])
      expect(await consult({ caller: subject, proof })).toMatchObject({ proofUsed: false })
    },
  )

  test('a proof of possession is accepted once with a reference, too', async () => {
    const { hash } = await keep()
    const proof = { replayId: crypto.randomUUID(), replayTtlSeconds: 60 }
    expect(await resolve(hash, { proof })).toMatchObject({ proofUsed: false })
    const replay = await resolve(hash, { proof })
    expect(replay.proofUsed).toBe(true)
    expect(replay.limits.filter(isPresent)).toEqual([])
  })
}

const isPresent = (value: unknown): boolean => value !== undefined
