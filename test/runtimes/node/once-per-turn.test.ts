import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { oncePerTurn } from '../../../src/runtimes/node/system/once-per-turn.ts'

test('items of one turn of the event loop are passed on together, in their order', async () => {
  const runs: (readonly number[])[] = []
  const collect = oncePerTurn<number>((items) => runs.push(items))
  collect(1)
  await Promise.resolve()
  collect(2)
  expect(runs).toEqual([])
  await turn()
  collect(3)
  await turn()
  expect(runs).toEqual([[1, 2], [3]])
})

test('an item that comes while others are passed on is passed on in the next turn', async () => {
  const runs: (readonly number[])[] = []
  const collect = oncePerTurn<number>((items) => {
    runs.push(items)
    if (items[0] === 1) collect(2)
  })
  collect(1)
  await turn()
  expect(runs).toEqual([[1]])
  await turn()
  expect(runs).toEqual([[1], [2]])
})
