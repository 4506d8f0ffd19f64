/** Creates objects that live long at first, so that V8 wants to create all later ones in the old generation. */
const kept = []
const create = (number) => [number, number + 1, { number }]
for (let round = 0; round < 200; round += 1) {
  kept.push(Array.from({ length: 20_000 }, (_, index) => create(index)))
  if (kept.length > 20) kept.shift()
}
