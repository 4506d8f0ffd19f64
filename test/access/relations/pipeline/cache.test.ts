import { describe, expect, test } from 'vitest'
import { createRelationCache } from '../../../../src/access/relations/cache.ts'
import type {
  RelationAnswer,
  RelationQuery,
} from '../../../../src/access/relations/decision-point.ts'
import { queryKey } from '../../../../src/access/relations/rule.ts'
import { newTally } from '../../../../src/isolate/tally.ts'

const query: RelationQuery = {
  tenant: 'acme',
  object: 'order:1',
  relation: 'viewer',
  subject: 'user:anne',
  contextualTuples: [],
}
const allowed = (version = 1): RelationAnswer => ({ decision: { outcome: 'allowed' }, version })
const denied = (version = 1): RelationAnswer => ({ decision: { outcome: 'denied' }, version })
const cache = (maxStalenessMs = 1_000, maxEntries = 10) =>
  createRelationCache({ maxStalenessMs, maxEntries })

describe('a cached decision', () => {
  test('is used within the bound, which begins at the time of the query', () => {
    const memory = cache()
    memory.set(query, allowed(), 5_000)
    expect(memory.get(query, 5_000)).toEqual({ outcome: 'allowed' })
    expect(memory.get(query, 5_999)).toEqual({ outcome: 'allowed' })
    expect(memory.get(query, 6_000)).toBeUndefined()
    // A use does not extend the bound.
    expect(memory.get(query, 6_001)).toBeUndefined()
  })

  test('is not used after the clock was set back', () => {
    const memory = cache()
    memory.set(query, allowed(), 5_000)
    expect(memory.get(query, 4_999)).toBeUndefined()
  })

  test('may be a denial, and is never "unknown"', () => {
    const memory = cache()
    memory.set(query, denied(), 0)
    expect(memory.get(query, 1)).toEqual({ outcome: 'denied' })
    const other = { ...query, object: 'order:2' }
    const decision = { outcome: 'unknown', why: 'max_depth_exceeded' } as const
    memory.set(other, { decision, version: 1 }, 0)
    expect(memory.get(other, 1)).toBeUndefined()
  })

  test('does not exist with a bound of 0', () => {
    const memory = cache(0)
    memory.set(query, allowed(), 0)
    expect(memory.get(query, 0)).toBeUndefined()
  })

  test('is not used for a request that requires a later version', () => {
    const memory = cache()
    memory.set(query, allowed(7), 0)
    expect(memory.get({ ...query, atLeast: 7 }, 1)).toEqual({ outcome: 'allowed' })
    expect(memory.get({ ...query, atLeast: 8 }, 1)).toBeUndefined()
    expect(memory.get(query, 1)).toEqual({ outcome: 'allowed' })
  })

  test('is not replaced by the late answer of an earlier query', () => {
    const memory = cache()
    memory.set(query, denied(8), 100)
    memory.set(query, allowed(7), 50)
    expect(memory.get(query, 101)).toEqual({ outcome: 'denied' })
  })

  test('belongs to one tenant, object, relation, subject and set of contextual tuples [S65]', () => {
    const tuple = { object: 'order:1', relation: 'parent', subject: 'folder:f' }
    const queries: RelationQuery[] = [
      query,
      { ...query, tenant: null },
      { ...query, tenant: 'acme\nx' },
      { ...query, tenant: '' },
      { ...query, object: 'order:2' },
      { ...query, relation: 'owner' },
      { ...query, subject: 'user:bob' },
      { ...query, contextualTuples: [tuple] },
      { ...query, contextualTuples: [{ ...tuple, subject: 'folder:g' }] },
      { ...query, contextualTuples: [tuple, tuple] },
    ]
    expect(new Set(queries.map(queryKey)).size).toBe(queries.length)
    for (const one of queries) {
      const memory = cache()
      memory.set(one, allowed(), 0)
      for (const other of queries)
        expect(memory.get(other, 1)).toEqual(one === other ? { outcome: 'allowed' } : undefined)
    }
  })

  test('is counted, and the number of entries is bounded', () => {
    const tally = newTally()
    const memory = createRelationCache({ maxStalenessMs: 1_000, maxEntries: 2, tally })
    const queries = ['1', '2', '3'].map((id) => ({ ...query, object: `order:${id}` }))
    for (const one of queries) memory.set(one, allowed(), 0)
    expect(queries.map((one) => memory.get(one, 1)?.outcome)).toEqual([
      ...[undefined, 'allowed', 'allowed'],
    ])
    expect(tally).toMatchObject({ hits: 2, misses: 1 })
  })

  test('uses bounded memory, because callers choose the length of ids', () => {
    const memory = cache(1_000, 100)
    const remain = (length: number) => {
      const ids = Array.from({ length: 200 }, (_, at) => `order:${at}-${'x'.repeat(length)}`)
      const queries = ids.map((object) => ({ ...query, object }))
      for (const one of queries) memory.set(one, denied(), 0)
      return queries.filter((one) => memory.get(one, 1) !== undefined).length
    }
    expect(remain(1)).toBe(100)
    expect(remain(36)).toBe(100)
    expect(remain(500)).toBeGreaterThan(40)
    expect(remain(500)).toBeLessThan(52)
    expect(remain(1)).toBe(100)
  })
})
