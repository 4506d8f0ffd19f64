/** Finds the rows of a route table whose patterns could match the same paths, without all pairs. */

interface Row {
  readonly method: string
  readonly path: string
}

/** A row, and its position among the rows that were added. */
export type Entry<Of> = readonly [at: number, row: Of]

interface Node<Of> {
  readonly entries: Entry<Of>[]
  readonly next: Map<string, Node<Of>>
}

export interface PathIndex<Of extends Row> {
  add(row: Of): void
  /**
   * Returns the rows with the method of `row` whose patterns differ from its pattern in no plain
   * segment, in the order of `add`. Case is ignored. So no common origin reads a path of `row` as a
   * path of another row. It includes patterns that are longer or shorter than that of `row`.
   */
  similarTo(row: Row): Entry<Of>[]
}

const PLAIN = /^[\w-]+$/
/** Stands for a segment that is not plain, such as a parameter. */
const OTHER = ''

export function createPathIndex<Of extends Row>(rows: readonly Of[] = []): PathIndex<Of> {
  const root: Node<Of> = { entries: [], next: new Map() }
  let size = 0

  function add(row: Of): void {
    let node = root
    for (const name of splitNames(row)) {
      const child = node.next.get(name) ?? { entries: [], next: new Map() }
      node.next.set(name, child)
      node = child
    }
    node.entries.push([size++, row])
  }

  for (const row of rows) add(row)
  return {
    add,
    similarTo: (row) =>
      [...entriesBelow(root, splitNames(row), 0)].sort(([one], [two]) => one - two),
  }
}

function* entriesBelow<Of>(
  node: Node<Of>,
  names: readonly string[],
  depth: number,
): Generator<Entry<Of>> {
  yield* node.entries
  const name = names[depth] ?? OTHER
  const children = name === OTHER ? node.next.values() : [node.next.get(name), node.next.get(OTHER)]
  for (const child of children)
    if (child !== undefined) yield* entriesBelow(child, names, depth + 1)
}

/** Returns the method and the segments of the path, in lower case. */
const splitNames = ({ method, path }: Row): string[] =>
  (method + path)
    .toLowerCase()
    .split('/')
    .map((name) => (PLAIN.test(name) ? name : OTHER))
