import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { NEVER } from '../../../harness/never.ts'
import { startWorld, type World } from './gateway.ts'

/** Seed of the random test of tenants. */
const TRIALS = Number(process.env.RELATION_TRIALS ?? 200)

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world?.close())
beforeEach(async () => {
  await world.redis.direct.flushall()
  world.reached.length = 0
})

describe('ambiguous path parameters [S65]', () => {
  /** Each is an id without any tuple, and resembles an id with tuples. */
  const SPELLINGS = [
    ...['secret#viewer@user:mallory', 'a:b#x@y*', 'secret#', '#secret', 'secret@user:mallory'],
    ...['*', 'secret*', '*secret', 'order:secret', 'secret:', ':secret', 'secret ', ' secret'],
    ...[
      'secret\u200b',
      'secret\u00ad',
      '\ufeffsecret',
      'SECRET',
      'secre\u0301t',
      'ſecret',
      'secrеt',
    ],
    ...['secret%', 'secret%00', '%73ecret', 'secret\n', 'secret\0', 'secret\u2028', 'secret/'],
    ...['secret;', 'secret?', 'secret\\', '../secret', './secret', 'secret/..', 'other/../secret'],
  ]
  const ENCODINGS: readonly ((text: string) => string)[] = [
    (text) => text,
    encodeURIComponent,
    (text) => encodeURIComponent(encodeURIComponent(text)),
    (text) => Array.from(new TextEncoder().encode(text), percent).join(''),
    (text) => Array.from(new TextEncoder().encode(text), percent).join('').toLowerCase(),
    (text) => text.replace(/[:#@*%]/g, (character) => percent(character.charCodeAt(0))),
    (text) =>
      text.replace(/[:#@*%]/g, (character) => `%25${percent(character.charCodeAt(0)).slice(1)}`),
  ]

  test('are refused or denied in every encoding, and the origin is never reached', async () => {
    const isolate = world.isolate()
    await world.write(null, 'order:secret#viewer@user:mallory', 'order:other#viewer@user:bob')
    const mallory = await world.token('mallory')
    expect(await isolate.statusOf('/orders/secret', mallory)).toBe(200)
    world.reached.length = 0
    const statuses = new Map<number, number>()
    for (const spelling of SPELLINGS) {
      for (const encode of ENCODINGS) {
        let path: string
        try {
          path = `/orders/${encode(spelling)}`
          // A client library would send another path here.
          if (new URL(`https://x${path}`).pathname === '/orders/secret') continue
        } catch {
          continue
        }
        const status = await isolate.statusOf(path, mallory)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
        expect([400, 403, 404], path).toContain(status)
      }
    }
    expect(world.reached).toEqual([])
    expect([...statuses.keys()].sort()).toEqual([400, 403, 404])
    expect(statuses.get(403)).toBeGreaterThan(50)
  })

  test('in the escaped spelling of a tuple open that object, and no other', async () => {
    const isolate = world.isolate()
    await world.write(null, 'order:a%3Ab%23x@y%2A#viewer@user:anne')
    const anne = await world.token('anne')
    expect(await isolate.statusOf('/orders/a:b%23x@y*', anne)).toBe(400)
    await world.write(null, 'order:a%3Ab@y%2A#viewer@user:anne')
    for (const path of ['/orders/a:b@y*', '/orders/a%3Ab%40y%2A'])
      expect(await isolate.statusOf(path, anne), path).toBe(200)
    for (const path of ['/orders/a', '/orders/a:b', '/orders/a:b@y', '/orders/a%253Ab@y*'])
      expect([400, 403], path).toContain(await isolate.statusOf(path, anne))
  })

  test('of subjects and tenants that resemble others are denied', async () => {
    const isolate = world.isolate()
    await world.write(null, 'order:1#viewer@user:anne', 'order:2#viewer@user:*')
    for (const sub of [
      'anne#member',
      'anne@x',
      'user:anne',
      'Anne',
      'anne\u00a0x',
      'group:a#member',
    ])
      expect(await isolate.statusOf('/orders/1', await world.token(sub)), sub).toBe(403)
    // A subject called * is one user, and a tuple for all users includes it.
    expect(await isolate.statusOf('/orders/1', await world.token('*'))).toBe(403)
    expect(await isolate.statusOf('/orders/2', await world.token('*'))).toBe(200)
    for (const tenant of ['acme', '%', ':', 'acme:order', '*'])
      expect(await isolate.statusOf('/orders/2', await world.token('anne', { tenant }))).toBe(403)
  })
})

const percent = (octet: number): string => `%${octet.toString(16).toUpperCase().padStart(2, '0')}`

describe('tenants [S65]', () => {
  test('with equal ids on both sides: no decision uses tuples of another tenant', async () => {
    const isolate = world.isolate({ relations: { maxStalenessMs: 60_000 } })
    const strict = world.isolate()
    const tenants = [null, 'acme', 'acme:x', 'globex', '%', 'a'.repeat(255)] as const
    const tokens = new Map(
      await Promise.all(
        tenants.flatMap((tenant) =>
          ['anne', 'bob'].map(async (sub) => {
            const token = await world.token(sub, tenant === null ? {} : { tenant })
            return [`${tenant} ${sub}`, token] as const
          }),
        ),
      ),
    )
    const ids = Array.from({ length: 12 }, (_, index) => `o${index}`)
    const mayView = new Set<string>()
    for (const tenant of tenants) {
      const tuples: string[] = []
      for (const id of ids)
        for (const sub of ['anne', 'bob'])
          if (Math.random() < 0.5) {
            tuples.push(`order:${id}#viewer@user:${sub}`)
            mayView.add(`${tenant} ${sub} ${id}`)
          }
      if (tuples.length > 0) await world.write(tenant, ...tuples)
    }
    let crossings = 0
    for (let trial = 0; trial < TRIALS; trial++) {
      const tenant = pick(tenants)
      const [sub, id] = [pick(['anne', 'bob']), pick(ids)]
      const token = tokens.get(`${tenant} ${sub}`)
      const expected = mayView.has(`${tenant} ${sub} ${id}`) ? 200 : 403
      for (const each of [isolate, strict])
        if ((await each.statusOf(`/orders/${id}`, token)) !== expected) crossings += 1
    }
    expect(crossings, NEVER).toBe(0)
  })
})

const pick = <Item>(list: readonly Item[]): Item =>
  list[Math.floor(Math.random() * list.length)] as Item
