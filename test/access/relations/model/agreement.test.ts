import { validator } from '@openfga/syntax-transformer'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compileModel } from '../../../../src/access/relations/compile-model.ts'
import { usualOrLong } from '../../../harness/long.ts'
import { computed, difference, direct, from, intersection, modelOf, typeOf, union } from './json.ts'

const RELATIONS = ['a', 'b', 'c'] as const
const relation = fc.constantFrom(...RELATIONS)

const { userset } = fc.letrec<{ userset: object }>((tie) => ({
  userset: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.constant(direct),
    relation.map(computed),
    relation.map((name) => from(name, 'parent')),
    fc.tuple(tie('userset'), tie('userset')).map((of) => union(...of)),
    fc.tuple(tie('userset'), tie('userset')).map((of) => intersection(...of)),
    fc.tuple(tie('userset'), tie('userset')).map(([base, subtract]) => difference(base, subtract)),
  ),
}))

/** `parent`, and three relations with users, usersets of either type, or no direct types. */
const type = (name: string) =>
  fc
    .record({
      usersets: fc.tuple(userset, userset, userset),
      parent: fc.constantFrom('document', 'folder'),
      direct: fc.array(
        fc.uniqueArray(
          fc.oneof(
            fc.constant({ type: 'user' }),
            fc.record({ type: fc.constantFrom('document', 'folder'), relation }),
          ),
          { minLength: 1, maxLength: 2, selector: (one) => JSON.stringify(one) },
        ),
        { minLength: 3, maxLength: 3 },
      ),
    })
    .map(({ usersets, parent, direct: named }) => {
      const given = RELATIONS.map((one, index) => [one, usersets[index], named[index]] as const)
      return typeOf(
        name,
        {
          parent: direct,
          ...Object.fromEntries(given.map(([one, of]) => [one, of])),
        },
        {
          parent: [{ type: parent }],
          ...Object.fromEntries(
            given.map(([one, of, types]) => [
              one,
              JSON.stringify(of).includes('"this"') ? (types ?? []) : [],
            ]),
          ),
        },
      )
    })

function complaintOf(check: () => void): string | undefined {
  try {
    check()
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

test("a model is accepted exactly if OpenFGA's own validator accepts it", () => {
  const agreed = { accepted: 0, refused: 0 }
  fc.assert(
    fc.property(type('document'), type('folder'), (document, folder) => {
      const json = modelOf(document, folder)
      const ours = complaintOf(() => compileModel(json))
      const theirs = complaintOf(() =>
        validator.validateJSON(json as unknown as Parameters<typeof validator.validateJSON>[0]),
      )
      // The validator leaves cycles with an exit to the server, and stops at `a or a`.
      if (ours?.includes('depends on itself') || theirs?.includes('duplicate')) return
      expect({ json, refused: ours !== undefined }).toEqual({ json, refused: theirs !== undefined })
      agreed[ours === undefined ? 'accepted' : 'refused']++
    }),
    { numRuns: usualOrLong(1_500, 4_000) },
  )
  expect(agreed.accepted).toBeGreaterThan(100)
  expect(agreed.refused).toBeGreaterThan(100)
})
