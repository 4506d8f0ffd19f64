/** The import graph of the code, type imports included, and the cycles between its folders. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

/** Returns paths of TypeScript files below a folder, relative to `root`, sorted. */
export function filesBelow(root: string, folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => join(folder, path))
    .sort()
}

/**
 * Returns the files of the project that a file imports: values and types, static and dynamic
 * imports.
 */
export function importsOf(root: string, file: string): string[] {
  const source = readFileSync(join(root, file), 'utf8')
  return [...source.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*'(\.[^']+)'/g)].map(
    ([, specifier = '']) => relative(root, resolve(root, dirname(file), specifier)),
  )
}

/** An import, written as `importer > imported`. */
export interface Edge {
  readonly from: string
  readonly to: string
}

/**
 * Returns the cycles between the nodes that `nodeOf` assigns to files: each as the sorted list of
 * its nodes with the imports that close it. Empty for a tree of dependencies.
 */
export function cyclesOf(
  edges: readonly Edge[],
  nodeOf: (file: string) => string,
): { readonly nodes: readonly string[]; readonly imports: readonly string[] }[] {
  const next = new Map<string, Set<string>>()
  for (const { from, to } of edges) {
    const [a, b] = [nodeOf(from), nodeOf(to)]
    if (a !== b) next.set(a, (next.get(a) ?? new Set()).add(b))
  }
  const reach = new Map([...next.keys()].map((node) => [node, reachableFrom(node, next)]))
  const together = (a: string, b: string) =>
    reach.get(a)?.has(b) === true && reach.get(b)?.has(a) === true
  const done = new Set<string>()
  const cycles = []
  for (const node of [...next.keys()].sort()) {
    if (done.has(node) || !together(node, node)) continue
    const nodes = [...next.keys()].filter((other) => together(node, other)).sort()
    for (const other of nodes) done.add(other)
    const imports = edges
      .filter(({ from, to }) => {
        const [a, b] = [nodeOf(from), nodeOf(to)]
        return a !== b && nodes.includes(a) && nodes.includes(b)
      })
      .map(({ from, to }) => `${from} > ${to}`)
    cycles.push({ nodes, imports })
  }
  return cycles
}

function reachableFrom(
  start: string,
  next: ReadonlyMap<string, ReadonlySet<string>>,
): ReadonlySet<string> {
  const found = new Set<string>()
  const queue = [start]
  for (let node = queue.pop(); node !== undefined; node = queue.pop())
    for (const other of next.get(node) ?? []) {
      if (found.has(other)) continue
      found.add(other)
      queue.push(other)
    }
  return found
}

/** Folders whose own folders are rooms. */
const HOUSES = new Set(['src/access', 'src/features', 'src/runtimes'])

/**
 * Returns the folder of a file. A file directly in `src` is its own node, and a feature is one folder:
 * `src/features/plans/redis/scripts.ts` is in `src/features/plans`.
 */
export function directoryOf(file: string): string {
  const folder = dirname(file)
  if (folder === 'src') return file
  return folder.startsWith('src/features/') ? roomOf(file) : folder
}

/**
 * Returns the room of a file: `src/access/admission/redis/store.ts` is in `src/access/admission`, and
 * `src/middleware/admit.ts` in `src/middleware`. A file beside rooms is its own.
 */
export function roomOf(file: string): string {
  const parts = file.split('/')
  const top = parts.slice(0, 2).join('/')
  const depth = HOUSES.has(top) ? 3 : 2
  return parts.length <= depth ? file : parts.slice(0, depth).join('/')
}
