import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ISSUER, startGateway, type TestGateway } from '../../../features/operators/gateway.ts'
import { usualOrLong } from '../../../harness/long.ts'

const TRIALS = Number(process.env.TENANT_TRIALS ?? usualOrLong(250, 600))
/** Names that could be confused with each other, or with parts of a key. */
const TENANTS = [undefined, 'acme', 'Acme', 'acme:', ':', '*', 'a%3Ab', 'a:b', 'x'.repeat(200)]
const OBJECTS = ['order:1', 'order:2', 'team:1']
const MEMBERS = ['user:a', 'user:b', 'team:1#member']
const TUPLES = [
  ...['order:1', 'order:2'].flatMap((object) =>
    MEMBERS.map((subject) => ({ object, relation: 'editor', subject })),
  ),
  ...['user:a', 'user:b'].map((subject) => ({ object: 'team:1', relation: 'member', subject })),
]
type Tuple = (typeof TUPLES)[number]
const textOf = ({ object, relation, subject }: Tuple) => `${object}#${relation}@${subject}`

let gateway: TestGateway
let operators: ReadonlyMap<string | undefined, string>
beforeAll(async () => {
  gateway = await startGateway()
  operators = new Map(
    await Promise.all(
      TENANTS.map(
        async (tenant) =>
          [
            tenant,
            await gateway.token({ sub: `olga-${tenant}`, roles: ['operator'], tenant }, ISSUER),
          ] as const,
      ),
    ),
  )
})
afterAll(() => gateway.close())

const pick = <Item>(items: readonly Item[]): Item =>
  items[Math.floor(Math.random() * items.length)] as Item
const relationTo = (object: string) => (object.startsWith('team') ? 'member' : 'editor')

/** Reports whether a tuple names the user, or the user is a member of the team that it names. */
function holds(set: ReadonlySet<string>, object: string, user: string): boolean {
  const relation = relationTo(object)
  const isMember =
    set.has(`team:1#member@${user}`) && set.has(`${object}#${relation}@team:1#member`)
  return set.has(`${object}#${relation}@${user}`) || isMember
}

describe('tenants with equal ids [S65]', () => {
  test('see and change nothing of each other in random calls', async () => {
    const sets = new Map(TENANTS.map((tenant) => [tenant, new Set<string>()]))
    let answers = 0
    for (let trial = 0; trial < TRIALS; trial += 1) {
      const tenant = pick(TENANTS)
      const set = sets.get(tenant) as Set<string>
      // The tenant's own operator may name it, and an operator without a tenant must.
      const isOwn = Math.random() < 0.5
      const as = operators.get(isOwn ? tenant : undefined) as string
      const named = !isOwn || Math.random() < 0.5 ? tenant : undefined
      const at = pick([0, 1] as const)
      const object = pick(OBJECTS)
      const relation = relationTo(object)
      const call = async (path: string, body: object) => {
        const reply = await gateway.admin('POST', path, { ...body, tenant: named }, { as, at })
        expect(reply.status, reply.text).toBe(200)
        answers += 1
        return reply.body
      }
      const kind = pick(['write', 'delete', 'check', 'read', 'expand'])
      if (kind === 'write' || kind === 'delete') {
        const tuple = pick(TUPLES)
        const isChange = (kind === 'write') !== set.has(textOf(tuple))
        const { written, deleted } = await call('/relations', { [`${kind}s`]: [tuple] })
        expect(written + deleted).toBe(isChange ? 1 : 0)
        if (kind === 'write') set.add(textOf(tuple))
        else set.delete(textOf(tuple))
      } else if (kind === 'check') {
        const subject = pick(['user:a', 'user:b'])
        const { allowed } = await call('/check', { object, relation, subject })
        expect(allowed).toBe(holds(set, object, subject))
      } else if (kind === 'expand') {
        const { tree } = await call('/expand', { object, relation })
        const own = [...set].filter((text) => text.startsWith(`${object}#${relation}@`))
        expect(
          tree.root.leaf.users.users.map((user: string) => `${object}#${relation}@${user}`).sort(),
        ).toEqual(own.sort())
      } else {
        const query = named === undefined ? '' : `&tenant=${encodeURIComponent(named)}`
        const path = `/relations?limit=200${query}`
        const { status, body } = await gateway.admin('GET', path, undefined, { as, at })
        expect(status).toBe(200)
        expect(body.tuples.map(textOf).sort()).toEqual([...set].sort())
        answers += 1
      }
    }
    expect(answers).toBe(TRIALS)
  })

  test('cannot be named by an operator of another tenant', async () => {
    for (const own of TENANTS)
      for (const other of TENANTS) {
        if (own === undefined || other === undefined || own === other) continue
        const as = operators.get(own) as string
        const body = { ...TUPLES[0], tenant: other }
        expect((await gateway.admin('POST', '/check', body, { as })).status).toBe(403)
      }
  })
})
