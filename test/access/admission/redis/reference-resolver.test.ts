import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createRedisReferenceResolver } from '../../../../src/access/admission/redis/reference-resolver.ts'
import { storedReference } from '../../../../src/access/tokens/reference.ts'
import { Unavailable } from '../../../../src/errors.ts'
import { upstash } from '../../../../src/features/upstash/index.ts'
import type { RedisCommand, RedisReply } from '../../../../src/redis/connection.ts'
import { DEFAULT_KEYS } from '../../../../src/redis/keys.ts'
import { ADMIT_REFERENCE_SCRIPT } from '../../../../src/redis/scripts.generated.ts'
import { GATEWAY, recordOf } from '../callers.ts'

const record = recordOf()
const text = await storedReference(record)
const read = ['pc:revoked:x', null, 'pc:cutoff:session:i:s', '1795183974', 'none', null]
const counted = ['key', 3, 2, 60_000, 0]
const rule = { name: 'test', limit: 3, windowSeconds: 60, onUnavailable: 'deny' } as const
const query = {
  reference: { hash: 'hash' },
  audience: GATEWAY,
  thumbprint: undefined,
  addressBan: 'none',
  limits: [{ rule, window: { key: 'key' } }],
  proof: undefined,
  nowMs: Date.UTC(2030, 0, 1),
}

/**
 * Creates a resolver over a Redis that gives these replies, one for each call. Returns the commands
 * it received as well.
 */
function resolverOver(...replies: RedisReply[]) {
  const sent: RedisCommand[] = []
  const resolve = createRedisReferenceResolver({
    keys: DEFAULT_KEYS,
    async send(commands) {
      sent.push(...commands)
      return [replies[sent.length - 1] ?? { error: 'ERR too many calls' }]
    },
  })
  return { resolve: () => resolve(query), sent }
}

describe('the reply of the reference script', () => {
  test('is parsed into a record, revocation state and limits', async () => {
    const { resolve, sent } = resolverOver({ result: [text, 0, read, counted] })
    const facts = await resolve()
    expect(facts.record).toMatchObject({ subject: record.subject })
    expect([...facts.read]).toEqual([
      ['pc:revoked:x', undefined],
      ['pc:cutoff:session:i:s', 1795183974],
      ['none', undefined],
    ])
    expect(facts.limits).toMatchObject([{ key: 'key', state: { remaining: 2, admitted: true } }])
    expect(sent.map(([name]) => name)).toEqual(['EVALSHA'])
  })

  test('the script text contains no data of a caller [S32]', async () => {
    const { resolve, sent } = resolverOver(
      { error: 'NOSCRIPT No matching script.' },
      { error: 'ERR' },
    )
    await expect(resolve()).rejects.toBeInstanceOf(Unavailable)
    expect(sent.map(([name, script]) => [name, script])).toEqual([
      ['EVALSHA', createHash('sha1').update(ADMIT_REFERENCE_SCRIPT).digest('hex')],
      ['EVAL', ADMIT_REFERENCE_SCRIPT],
    ])
  })

  test.each([
    ['a remainder below that of a refusal', [3, -2, 0, 0]],
    ['a remainder equal to the limit', [3, 3, 0, 0]],
    ['a negative limit', [-3, -1, 0, 0]],
  ])('of a window of the upstash engine, %s is an outage [R06]', async (_, numbers) => {
    const other = { rule: { ...rule, engine: upstash() }, window: { key: 'key' } }
    const resolve = createRedisReferenceResolver({
      keys: DEFAULT_KEYS,
      send: async () => [{ result: [text, 0, read, ['key', ...numbers]] }],
    })
    await expect(resolve({ ...query, limits: [other] })).rejects.toBeInstanceOf(Unavailable)
  })

  test.each([
    ['an error', { error: 'ERR user_script:1: of the subject alice' }],
    ['nothing', {}],
    ['null', { result: null }],
    ['text', { result: text }],
    ['an object', { result: { 0: text } }],
    ['too few parts', { result: [text, 0, read] }],
    ['too many parts', { result: [text, 0, read, counted, 1] }],
    ['no record and no result for it', { result: [null, 0, read, counted] }],
    ['an empty record', { result: ['', 0, read, counted] }],
    ['a number as record', { result: [1, 0, read, counted] }],
    ['a record without parts', { result: [JSON.stringify({ record }), 0, read, counted] }],
    ['null for the proof', { result: [text, null, read, counted] }],
    ['text for the proof', { result: [text, '0', read, counted] }],
    ['no values of keys', { result: [text, 0, null, counted] }],
    ['a value that is not text', { result: [text, 0, ['pc:cutoff:x', 1], counted] }],
    ['an empty cutoff', { result: [text, 0, ['pc:cutoff:x', ''], counted] }],
    ['a key without its value', { result: [text, 0, ['pc:revoked:x'], counted] }],
    ['a cutoff that is not a second', { result: [text, 0, ['none', 'soon'], counted] }],
    ['too few counts', { result: [text, 0, read, counted.slice(1)] }],
    ['counts of additional limits', { result: [text, 0, read, [...counted, ...counted]] }],
    ['a count that is text', { result: [text, 0, read, ['key', 3, '2', 60_000, 0]] }],
    ['a count that is not a number', { result: [text, 0, read, ['key', 3, null, 60_000, 0]] }],
    ['a fraction', { result: [text, 0, read, ['key', 3, 0.5, 60_000, 0]] }],
    ['more left than the limit', { result: [text, 0, read, ['key', 3, 4, 60_000, 0]] }],
    ['a time in the past', { result: [text, 0, read, ['key', 3, 2, -1, 0]] }],
    ['a window without a name', { result: [text, 0, read, [1, 3, 2, 60_000, 0]] }],
  ] as const)('%s is an outage, and the error quotes nothing of it [R06]', async (_, reply) => {
    const failure = await resolverOver(reply as RedisReply)
      .resolve()
      .then(
        () => undefined,
        (error: unknown) => error,
      )
    expect(failure).toBeInstanceOf(Unavailable)
    expect((failure as Unavailable).message).toMatch(/^redis: (malformed|refused)$/)
  })
})
