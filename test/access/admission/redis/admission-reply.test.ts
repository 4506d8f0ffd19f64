import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createRedisAdmissionStore } from '../../../../src/access/admission/redis/store.ts'
import type { AdmissionQuery } from '../../../../src/access/admission/store.ts'
import { Unavailable } from '../../../../src/errors.ts'
import type { RedisCommand, RedisReply } from '../../../../src/redis/connection.ts'
import { DEFAULT_KEYS } from '../../../../src/redis/keys.ts'
import { ADMIT_SCRIPT } from '../../../../src/redis/scripts.generated.ts'

const rule = { name: 'test', limit: 3, windowSeconds: 60, onUnavailable: 'deny' } as const
const query: AdmissionQuery = {
  revocation: {
    cacheKey: 'alice',
    token: 'pc:revoked:x',
    revokedBefore: [{ kind: 'subject', key: 'pc:cutoff:subject:i:alice' }],
    issuedAtSeconds: 1_795_183_974,
  },
  bans: [{ by: 'address', key: 'pc:ban:address:a' }],
  observedBans: [{ by: 'address', key: 'pc:observed-ban:address:a' }],
  limits: [{ rule, key: 'key' }],
  proof: { replayId: 'x', replayTtlSeconds: 80 },
  nowMs: 1_795_183_980_000,
}
const counted = [3, 2, 60_000]

const FLAGGED = `#!lua flags=allow-key-locking\n${ADMIT_SCRIPT}`

/**
 * Creates a store over a Redis that gives these replies, one for each call. Returns the commands it
 * received as well.
 */
function storeOver(...replies: RedisReply[]) {
  const sent: RedisCommand[] = []
  const store = createRedisAdmissionStore({
    keys: DEFAULT_KEYS,
    async send(commands) {
      sent.push(...commands)
      return [replies[sent.length - 1] ?? { error: 'ERR too many calls' }]
    },
  })
  return { consult: () => store.consult(query), sent }
}

describe('the reply of the admission script', () => {
  test('for a caller without any stored state', async () => {
    const { consult, sent } = storeOver({ result: [0, 0, ...counted] })
    const facts = await consult()
    expect(facts).toMatchObject({ tokenRevoked: false, proofUsed: false })
    expect(facts.revokedBeforeSeconds[0]).toBeUndefined()
    expect(facts.bannedUntilSeconds[0]).toBeUndefined()
    expect(facts.limits).toMatchObject([{ rule, limit: 3, remaining: 2, admitted: true }])
    expect(sent.length).toBe(1)
    expect(sent[0]?.slice(0, 3)).toEqual([
      'EVALSHA',
      createHash('sha1').update(FLAGGED).digest('hex'),
      7,
    ])
  })

  test('for a caller with every stored state, without checking limits', async () => {
    const there = [1, '1', 2, '1795183000', 3, '1795183990', 4, '1795183991']
    const facts = await storeOver({ result: [4, 0, ...there] }).consult()
    expect(facts).toEqual({
      tokenRevoked: true,
      revokedBeforeSeconds: [1_795_183_000],
      bannedUntilSeconds: [1_795_183_990],
      observedUntilSeconds: [1_795_183_991],
      proofUsed: false,
      limits: [undefined],
    })
  })

  test('the script text contains no data of a caller [S32]', async () => {
    const sent: RedisCommand[] = []
    const store = createRedisAdmissionStore({
      keys: DEFAULT_KEYS,
      async send(commands) {
        sent.push(...commands)
        if (commands.length === 1) return [{ error: 'NOSCRIPT No matching script.' }]
        return [{ result: 'its name' }, { result: [0, 1] }]
      },
    })
    expect((await store.consult(query)).proofUsed).toBe(true)
    expect(sent.map(([name]) => name)).toEqual(['EVALSHA', 'SCRIPT', 'EVALSHA'])
    expect(sent[1]).toEqual(['SCRIPT', 'LOAD', FLAGGED])
    expect(sent[2]).toEqual(sent[0])
  })

  test.each([
    ['an error', { error: 'WRONGTYPE of the key pc:revoked:x' }],
    ['nothing', {}],
    ['null', { result: null }],
    ['text', { result: 'OK' }],
    ['an object', { result: { 0: 0, 1: 0 } }],
    ['an empty list', { result: [] }],
    ['null as number of values', { result: [null, 0, ...counted] }],
    ['a negative number of values', { result: [-1, 0, ...counted] }],
    ['one value too few', { result: [1, 0, ...counted] }],
    ['many values too few', { result: [9, 0, ...counted] }],
    ['no result for the proof', { result: [0] }],
    ['null for the proof', { result: [0, null, ...counted] }],
    ['text for the proof', { result: [0, '0', ...counted] }],
    ['an unknown number for the proof', { result: [0, 2, ...counted] }],
    ['a key that was not requested', { result: [1, 0, 5, '1', ...counted] }],
    ['a key before the first', { result: [1, 0, 0, '1', ...counted] }],
    ['a value that is not text', { result: [1, 0, 1, 1, ...counted] }],
    ['a cutoff that is not a second', { result: [1, 0, 2, 'soon'] }],
    ['a ban that is not a second', { result: [1, 0, 3, ''] }],
    ['too few counts', { result: [0, 0, 3, 2] }],
    ['too many counts', { result: [0, 0, ...counted, ...counted] }],
    ['a count that is text', { result: [0, 0, 3, '2', 60_000] }],
    ['a count that is null', { result: [0, 0, 3, null, 60_000] }],
    ['a fraction', { result: [0, 0, 3, 0.5, 60_000] }],
    ['more left than the limit', { result: [0, 0, 3, 4, 60_000] }],
    ['more than the limit beyond a refusal', { result: [0, 0, 3, -5, 60_000] }],
    ['a time in the past', { result: [0, 0, 3, 2, -1] }],
    ['a negative limit', { result: [0, 0, -2, 0, 0] }],
  ] as const)('%s is an outage, and the error quotes nothing of it [R06]', async (_, reply) => {
    const failure = await storeOver(reply as RedisReply)
      .consult()
      .then(
        () => undefined,
        (error: unknown) => error,
      )
    expect(failure).toBeInstanceOf(Unavailable)
    expect((failure as Unavailable).message).toMatch(/^redis: (malformed|refused)$/)
  })
})
