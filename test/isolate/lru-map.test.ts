import fc from 'fast-check'
import { LRUCache } from 'lru-cache'
import { expect, test } from 'vitest'
import { createLruMap } from '../../src/isolate/lru-map.ts'

const key = fc.integer({ min: 0, max: 7 })
const call = fc.oneof(
  fc.record({ name: fc.constant('set' as const), key, value: fc.integer({ min: 1, max: 9 }) }),
  fc.record({ name: fc.constantFrom('get' as const, 'peek' as const, 'delete' as const), key }),
)
const bounds = fc.oneof(
  fc.record({ max: fc.integer({ min: 1, max: 5 }) }),
  fc.record({ maxSize: fc.integer({ min: 1, max: 20 }) }),
  fc.record({ max: fc.integer({ min: 1, max: 5 }), maxSize: fc.integer({ min: 1, max: 20 }) }),
)

test('after any calls it has the entries of lru-cache, in the same order, and disposed of the same ones', () => {
  fc.assert(
    fc.property(bounds, fc.array(call, { maxLength: 60 }), (bound, calls) => {
      const disposed: Record<'own' | 'other', unknown[]> = { own: [], other: [] }
      const optionsOf = (whose: 'own' | 'other') => ({
        ...bound,
        ...('maxSize' in bound && { sizeCalculation: (value: number, k: number) => value + k }),
        dispose: (...args: readonly unknown[]) => void disposed[whose].push(args),
      })
      const own = createLruMap<number, number>(optionsOf('own'))
      const other = new LRUCache<number, number>(optionsOf('other') as { max: number })
      for (const { name, key, ...rest } of calls) {
        if (name === 'set') {
          const { value } = rest as { value: number }
          own.set(key, value)
          other.set(key, value)
        } else expect(own[name](key)).toBe(other[name](key))
        expect([...own.rkeys()]).toEqual([...other.rkeys()])
        expect(own.size).toBe(other.size)
        expect(disposed.own).toEqual(disposed.other)
      }
    }),
    { seed: 20_261_127, numRuns: 2_000 },
  )
})
