import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createProgressList, type ProgressEntry } from '../../src/isolate/progress-list.ts'

interface Numbered extends ProgressEntry<Numbered> {
  readonly id: number
}

test('has the entries of a Set, in its order, in both directions; removed entries refer to none', () => {
  const steps = fc.array(fc.nat(20), { maxLength: 100 })
  fc.assert(
    fc.property(steps, (ids) => {
      const list = createProgressList<Numbered>()
      const model = new Set<Numbered>()
      const entries = new Map<number, Numbered>()
      for (const id of ids) {
        const entry = entries.get(id) ?? { id }
        entries.set(id, entry)
        if (model.delete(entry)) {
          list.remove(entry)
          expect([entry.older, entry.newer]).toEqual([undefined, undefined])
        } else {
          // It is not in the list yet.
          list.remove(entry)
          model.add(entry)
          list.add(entry)
        }
      }
      const forward: number[] = []
      for (let at = list.oldest; at !== undefined; at = at.newer) forward.push(at.id)
      const backward: number[] = []
      for (let at = list.newest; at !== undefined; at = at.older) backward.push(at.id)
      const expected = [...model].map(({ id }) => id)
      expect(forward).toEqual(expected)
      expect(backward).toEqual(expected.toReversed())
    }),
  )
})
