/** The examples in the first steps of docs/relations.md, unchanged. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { modelOf } from '../../dev/model/language.ts'
import { compileModel } from '../../src/access/relations/compile-model.ts'
import { mistakeOfTuple } from '../../src/access/relations/permitted.ts'
import { parseTuple } from '../../src/access/relations/tuple.ts'
import { ROOT } from '../harness/process.ts'

const GUIDE = readFileSync(join(ROOT, 'docs/relations.md'), 'utf8')

/** Blocks of the language `text`, without the indentation of a list, as a reader copies them. */
const TEXTS = [...GUIDE.matchAll(/^( *)```text\n(.*?)\n\1```$/gms)].map(
  ([, indent = '', text = '']) => text.replace(new RegExp(`^${indent}`, 'gm'), ''),
)
const MODELS = TEXTS.filter((text) => /^\s*define /m.test(text))

test('the guide has one valid model, and the model permits its tuples, checks and route relations', () => {
  expect(MODELS.length).toBe(1)
  for (const text of MODELS) {
    const model = compileModel(modelOf(`${text}\n`))
    const written = [...GUIDE.matchAll(/relations write (.+)$/gm)].flatMap(([, all = '']) =>
      all.split(' '),
    )
    expect(written.length).toBeGreaterThan(1)
    for (const tuple of written) {
      const parsed = parseTuple(tuple)
      expect({
        tuple,
        mistake: parsed ? mistakeOfTuple(model, parsed) : 'cannot be parsed',
      }).toEqual({
        tuple,
      })
    }
    const used = [
      ...GUIDE.matchAll(/object: '(\w+):\{params\.id\}', relation: '(\w+)' \},\n/g),
      ...GUIDE.matchAll(/portcullis check (\w+):\S+ (\w+) /g),
    ]
    expect(used.length).toBe(2)
    for (const [, type = '', relation = ''] of used)
      expect({ type, has: model.types.get(type)?.has(relation) }).toEqual({ type, has: true })
  }
})
