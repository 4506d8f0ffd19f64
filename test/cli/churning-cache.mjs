/** Replaces the oldest of many entries again and again, and prints the largest heap as a multiple of its live data. */
import { getHeapStatistics } from 'node:v8'

const SLOTS = 30_000
const create = (number) => Array.from({ length: 100 }, (_, index) => number + index + 0.5)
const entries = Array.from({ length: SLOTS }, (_, slot) => create(slot))
globalThis.gc()
const live = getHeapStatistics().used_heap_size
let most = 0
for (let number = 0; number < 8 * SLOTS; number += 1) {
  entries[number % SLOTS] = create(number)
  if (number % 1_000 === 0) most = Math.max(most, getHeapStatistics().used_heap_size)
}
console.log(most / live)
