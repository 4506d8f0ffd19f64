/** Where the keys of one server are on a cluster: the table has every name, and finds the lane that reads the key. */
import { describe, expect, test } from 'vitest'
import type { RedisConnection } from '../../../src/redis/connection.ts'
import { keyPart } from '../../../src/redis/key-part.ts'
import * as names from '../../../src/redis/keys.ts'
import { createLanes } from '../../../src/redis/lanes.ts'
import { secretDigest } from '../../../src/runtimes/node/redis/cluster/digest.ts'
import { kindOf } from '../../../src/runtimes/node/redis/import/kinds.ts'
import { placesOf } from '../../../src/runtimes/node/redis/import/places.ts'

const TENANT = 'acme'
const FEATURE = 'my-feature'
/** Functions of the module that return no names. */
const OTHERS = ['endsKey', 'renamed']

/** Returns every name of a module's function. */
function namesOf(named: unknown): readonly string[] {
  if (typeof named === 'string') return [named]
  if (typeof named !== 'object' || named === null) throw new Error('not a name')
  return Object.entries(named).flatMap(([id, one]): readonly string[] => {
    if (id === 'prefix' && one === '') return []
    if (typeof one === 'object' && 'index' in one)
      return [one.prefix, one.index, names.endsKey(one.index)]
    return namesOf(one)
  })
}

describe('the table of an import', () => {
  const functions = Object.entries(names).filter(
    ([id, value]) => typeof value === 'function' && !OTHERS.includes(id),
  )
  const all = functions.flatMap(([id, create]) => {
    const own = id === 'createKeys' ? [''] : [{ prefix: '' }]
    const part = id === 'featureKeys' ? FEATURE : TENANT
    return namesOf(Reflect.apply(create as () => unknown, undefined, [...own, part]))
  })

  test('is compared with every function of keys.ts', () => {
    expect(functions.map(([id]) => id)).toEqual(
      expect.arrayContaining(['createKeys', 'recordKeys', 'relationKeys', 'consoleKeys']),
    )
    expect(all.length).toBeGreaterThan(80)
  })

  test.each(all)('says where %s is copied to, or why not', (name) => {
    // Whatever follows a beginning, the rule is that of this name, and not of a shorter one.
    const kind = kindOf(name.endsWith(':') ? `${name}more` : name)
    const beginning = name.replace(`${TENANT}:`, '').replace(TENANT, '').replace(`${FEATURE}:`, '')
    expect(kind?.name).toBe(beginning)
    if (kind && 'skip' in kind.rule) expect(kind.rule.skip).toMatch(/^\w.{10,}/)
  })

  test('has no rule for a name that no gateway writes', () => {
    for (const name of ['', 'cutoff', 'bans:other', 'new-kind:1', '{53t}:limit:x'])
      expect(kindOf(name)).toBeUndefined()
  })
})

describe('a key is copied', () => {
  const cluster = createLanes({
    digest: secretDigest,
    prefix: 'pc:',
    count: 16,
    connect: (keys): RedisConnection => ({ keys, send: async () => [] }),
  })
  const laneOf = (value: string) => cluster.lanes.of(value).keys.prefix
  const control = cluster.keys.prefix
  const issuer = encodeURIComponent('https://issuer.test')
  const long = 'x'.repeat(200)

  function copiesOf(name: string, keySubject?: string, subject?: string) {
    const kind = kindOf(name)
    if (kind === undefined) throw new Error(`${name} has no kind`)
    return placesOf(cluster, { kind, name, prefix: 'pc:', keySubject, subject })
  }
  const namesIn = (name: string, keySubject?: string) =>
    copiesOf(name, keySubject)?.copies.map(({ key }) => key)

  test.each([
    [`limit:few:subject:${issuer}:anne`, 'anne'],
    [`limit:few:subject:${issuer}:acme:anne`, 'anne'],
    [`limit:few:tenant:${issuer}:a%3Ab`, 'a:b'],
    ['limit:few:address:2001%3Adb8%3A%3A%2F64', '2001:db8::/64'],
    ['limit:few-day:custom:x', 'x'],
  ])('%s: a window to the lane of its party', (name, party) => {
    expect(namesIn(name)).toEqual([laneOf(party) + name])
  })

  test('a window of an API key to the lane of the subject of the key, or to all if it is not known', () => {
    const name = `limit:few:key:${issuer}:0190`
    expect(namesIn(name, 'anne')).toEqual([laneOf('anne') + name])
    expect(namesIn(name)).toHaveLength(16)
  })

  test('a window whose party is only known as a hash to all lanes', async () => {
    expect(namesIn(`limit:few:subject:${issuer}:${await keyPart(long)}`)).toHaveLength(16)
  })

  test('tuples to the lane of their tenant, and to the control lane without one', () => {
    expect(namesIn('tuples:acme:doc:1#viewer')).toEqual([
      `${laneOf('acme')}tuples:acme:doc:1#viewer`,
    ])
    expect(namesIn('relation-version:acme')).toEqual([`${laneOf('acme')}relation-version:acme`])
    expect(namesIn('tuples::doc:1#viewer')).toEqual([`${control}tuples::doc:1#viewer`])
  })

  test('a used proof to every lane, because its subject is not known', () => {
    expect(namesIn('dpop:hash')).toHaveLength(17)
  })

  test.each(['reference:hash', 'session:id', 'refresh:hash', 'code:hash'])(
    '%s: a credential to the lane of its subject, with a note in the lane of its hash',
    (name) => {
      const [, rest = ''] = name.split(':')
      const home = laneOf(rest === 'id' ? secretDigest(rest) : rest)
      const subject = ['anne', 'bert', 'carl'].find((each) => laneOf(each) !== home) ?? ''
      const key = copiesOf(name, undefined, subject)
      expect(key?.copies.map(({ key }) => key)).toEqual([laneOf(subject) + name])
      const { note } = key ?? {}
      expect(note?.key).toBe(`${home}moved:${rest === 'id' ? secretDigest(rest) : rest}`)
      expect(cluster.lanes.all[note?.place ?? -1]?.keys.prefix).toBe(laneOf(subject))
      // That of an API key, or an unreadable one.
      expect(namesIn(name)).toEqual([control + name])
    },
  )

  test('the lists of a user to its lane, and to the control lane if the user is only known as a hash', async () => {
    for (const name of [`user-sessions:${issuer}:anne`, `consents:${issuer}:acme:anne`])
      expect(namesIn(name)).toEqual([laneOf('anne') + name])
    const sessions = `consent-sessions:${issuer}:anne:hash-of-the-client`
    expect(namesIn(sessions)).toEqual([laneOf('anne') + sessions])
    const hashed = `user-sessions:${issuer}:${await keyPart(long)}`
    expect(namesIn(hashed)).toEqual([control + hashed])
  })

  test('what has no subject yet to the lane of its hash, and a single use to the control lane too', () => {
    for (const name of ['sign-in:hash', 'hand-over:hash', 'authorization-request:hash'])
      expect(namesIn(name)).toEqual([laneOf('hash') + name])
    for (const name of ['logout-token:hash', 'client-assertion:hash'])
      expect(namesIn(name)).toEqual([laneOf('hash') + name, control + name])
  })

  test('owners with the new name of the key that they own', () => {
    expect(namesIn('holders:pc:cutoff:client:i:app')).toEqual([
      `${control}holders:${control}cutoff:client:i:app`,
    ])
  })

  test('a fact to the control lane, with the subject whose lane needs it', async () => {
    for (const kind of ['cutoff', 'ban', 'observed-ban']) {
      const name = `${kind}:subject:${issuer}:a%3Ab`
      expect(copiesOf(name)).toMatchObject({ to: 'fact', subject: 'a:b' })
      expect(namesIn(name)).toEqual([control + name])
    }
    expect(copiesOf(`cutoff:client:${issuer}:app`)?.subject).toBeUndefined()
    expect(copiesOf('ban:address:192.0.2.1')?.subject).toBeUndefined()
    expect(copiesOf(`ban:subject:${issuer}:${await keyPart(long)}`)?.subject).toBeUndefined()
  })
})
