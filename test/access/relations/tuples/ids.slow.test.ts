import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { escapeId } from '../../../../src/access/relations/tuple.ts'
import { startGateway, type TestGateway } from '../../../features/operators/gateway.ts'
import { usualOrLong } from '../../../harness/long.ts'

/** Sets of random ids. */
const RUNS = Number(process.env.TUPLE_RUNS ?? usualOrLong(5, 15))

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.close())
beforeEach(() => gateway.redis.direct.flushall())

/** Ids that could be confused with other syntax or with each other. */
const HOSTILE = [
  ...[':', '#', '@', '*', '%', 'a:b', 'a#viewer', 'a@b', 'a*', '**', 'a#viewer@user:b'],
  ...['%3A', '%3a', '%23', '%40', '%2A', '%2a', '%252A', '%25', '%', '%%', '%zz', '%00', '%C3%A9'],
  ...['\0', '\n', '\r\n', '\t', ' ', 'a ', ' a', 'a b', '\u0085', '\u00a0', '\u007f', '\u001b[0m'],
  ...['\u200b', '\u200d', '\ufeff', '\u202e', '\u2028', '\u2029', '\u00ad', '\u3000'],
  ...['\ufffd', '\ud800', '\udc00', 'a\ud800', '\ud83d', '\u{1f600}', '\u{10ffff}', '\uffff'],
  ...[
    '\u00e9',
    'e\u0301',
    '\u212b',
    '\u00c5',
    'A\u030a',
    '\ufb01',
    'fi',
    '\u017f',
    's',
    'S',
    'K',
    '\u212a',
  ],
  ...[
    '__proto__',
    'constructor',
    'null',
    '0',
    '-0',
    '00',
    '1e3',
    '..',
    '.',
    '/',
    '\\',
    '"',
    "'",
    '`',
  ],
  ...[
    '{',
    '}',
    '[',
    ']',
    '$',
    '\u0000\u0000',
    'x'.repeat(512),
    'x'.repeat(513),
    'x'.repeat(10_240),
  ],
  ...['é'.repeat(300), '%'.repeat(170), '%'.repeat(171), `${'x'.repeat(511)}\ud83d`],
]

/** Writes `order:<id> owner user:<id>`. Resolves to whether the gateway accepted it. */
async function isAccepted(object: string, subject: string): Promise<boolean> {
  const body = { writes: [{ object, relation: 'owner', subject }] }
  const { status, text } = await gateway.admin('POST', '/relations', body)
  expect([200, 422], `${JSON.stringify(object)}: ${text}`).toContain(status)
  return status === 200
}

async function isOwner(object: string, subject: string): Promise<boolean> {
  const question = { object, relation: 'owner', subject }
  const { status, body } = await gateway.admin('POST', '/check', question)
  expect(status).toBe(200)
  return body.allowed
}

async function listed(query: string): Promise<readonly string[]> {
  const { status, body } = await gateway.admin('GET', `/relations?limit=200&${query}`)
  expect(status).toBe(200)
  expect(body.cursor).toBeUndefined()
  return body.tuples.map((one: { object: string; subject: string }) =>
    JSON.stringify([one.object, one.subject]),
  )
}

/** Expects that each accepted tuple is stored unchanged and grants nothing to another id. */
async function expectApart(ids: readonly string[]): Promise<void> {
  const pairs = ids.map((id) => [`order:${id}`, `user:${id}`] as const)
  expect([...(await listed(''))].sort()).toEqual(pairs.map((pair) => JSON.stringify(pair)).sort())
  for (const [at, [object, subject]] of pairs.entries()) {
    expect(await listed(`object=${encodeURIComponent(object)}`)).toEqual([
      JSON.stringify([object, subject]),
    ])
    expect(await listed(`subject=${encodeURIComponent(subject)}`)).toEqual([
      JSON.stringify([object, subject]),
    ])
    expect(await isOwner(object, subject)).toBe(true)
    const [, other = ''] = pairs[(at + 1) % pairs.length] ?? []
    if (other !== subject) expect(await isOwner(object, other)).toBe(false)
  }
}

describe('ids of objects and subjects [S65]', () => {
  test('are refused or kept unchanged in their raw form: none becomes another', async () => {
    const accepted: string[] = []
    for (const id of new Set(HOSTILE)) {
      const [asObject, asSubject] = [
        await isAccepted(`order:${id}`, 'user:probe'),
        await isAccepted('order:probe', `user:${id}`),
      ]
      // `user:*` is not the id of a user; this relation does not permit a wildcard.
      expect(asSubject, JSON.stringify(id)).toBe(asObject)
      if (asObject) accepted.push(id)
    }
    expect(accepted).toContain('a@b')
    expect(accepted).toContain('%3A')
    for (const id of [':', '#', '*', '%', '%3a', '%40', '\0', ' ', '\ufeff', '\ud800'])
      expect(accepted, JSON.stringify(id)).not.toContain(id)
    for (const id of accepted) expect(id.length).toBeLessThanOrEqual(512)
    await gateway.redis.direct.flushall()
    for (const id of accepted) expect(await isAccepted(`order:${id}`, `user:${id}`)).toBe(true)
    await expectApart(accepted)
  })

  test('are accepted in their escaped form, except impossible ids, and none becomes another', async () => {
    const escaped = [...new Set(HOSTILE)].flatMap((text) => {
      const id = escapeId(text)
      if (id === undefined) expect(text.length > 170 || !text.isWellFormed()).toBe(true)
      return id ?? []
    })
    expect(new Set(escaped).size).toBe(escaped.length)
    expect(escaped.length).toBeGreaterThan(80)
    for (const id of escaped) expect(await isAccepted(`order:${id}`, `user:${id}`)).toBe(true)
    await expectApart(escaped)
  })

  test('are kept apart at random as well', async () => {
    const part = fc.oneof(
      fc.constantFrom(...':#@*%|/ \0\n\u200b\ufffd\u00e9'),
      fc.constantFrom('e\u0301', '%3A', '%25', '\ud800', 'owner', 'user'),
      fc.string({ unit: 'binary', maxLength: 3 }),
    )
    const text = fc.array(part, { maxLength: 6 }).map((parts) => parts.join(''))
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(text, { minLength: 2, maxLength: 8 }), async (texts) => {
        await gateway.redis.direct.flushall()
        const accepted = new Set<string>()
        for (const raw of texts)
          for (const id of new Set([raw, escapeId(raw) ?? raw]))
            if (await isAccepted(`order:${id}`, `user:${id}`)) accepted.add(id)
        await expectApart([...accepted])
      }),
      { numRuns: RUNS },
    )
  })

  test('of 10 KB, and invalid names of types and relations, are refused everywhere', async () => {
    const long = 'x'.repeat(10_240)
    const good = { object: 'order:1', relation: 'owner', subject: 'user:a' }
    const wrong = [
      { object: `order:${long}` },
      { subject: `user:${long}` },
      { subject: `team:${long}#member` },
      { relation: long },
      { object: `${long}:1` },
      { object: 'Order :1' },
      { object: 'orde\u0433:1' },
      { relation: 'owner\0' },
      { relation: '__proto__' },
      { object: '__proto__:1' },
      { subject: 'constructor:1' },
      { subject: 'user:a#constructor' },
      { object: 'order:' },
      { object: '' },
      { subject: 'user:' },
      { subject: 'user:*#member' },
      { subject: 'user:a#b#c' },
    ]
    for (const part of wrong) {
      const tuple = { ...good, ...part }
      for (const [path, body] of [
        ['/relations', { writes: [tuple] }],
        ['/check', tuple],
        ['/check', { ...good, contextualTuples: [tuple] }],
      ] as const) {
        const { status } = await gateway.admin('POST', path, body)
        expect(status, `${path} ${JSON.stringify(part).slice(0, 60)}`).toBe(422)
      }
    }
    expect(await gateway.redis.direct.keys('pc:*tuple*')).toEqual([])
  })
})
