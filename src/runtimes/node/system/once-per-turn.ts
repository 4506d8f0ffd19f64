/** Collects what one turn of the event loop produces. */

/**
 * Returns a function that collects items, and calls `run` with those of one turn of the event loop, at its
 * end. System calls that follow one another cost less: the first one wakes the receiver, and the others find
 * it running. `run` must not throw.
 */
export function oncePerTurn<Item>(run: (items: readonly Item[]) => void): (item: Item) => void {
  let items: Item[] = []
  function flush(): void {
    const collected = items
    items = []
    run(collected)
  }
  return function collect(item) {
    if (items.length === 0) setImmediate(flush)
    items.push(item)
  }
}
