/** Reads a CPU profile: its stacks, and the module of each function. No I/O. */
import { rounded, sumOf } from '../measure/statistics.ts'
import type { CpuProfile, ProfileNode } from '../stack/inspector.ts'

/** V8's name for an idle thread. */
const IDLE = '(idle)'

/** A function at one position in the call tree. */
export interface Frame {
  readonly name: string
  /** A file of this project or a package. Undefined for platform functions, which have no source. */
  readonly module: string | undefined
}

/** A stack and the time in which its first frame was on top. */
export interface SampledStack {
  /** From the top of the stack, where the time was spent, down to the entry point. Never empty. */
  readonly frames: readonly Frame[]
  readonly micros: number
}

/** Returns the module of a function that has a source: a file of this project or a package. */
export type ModuleOf = (place: { readonly url: string; readonly lineNumber: number }) => string

/** Returns every position of the tree where time was spent, without idle time and the root. */
export function sampledStacks(profile: CpuProfile, moduleOf: ModuleOf): readonly SampledStack[] {
  const { nodes } = profile
  const parents = new Map<number, ProfileNode>()
  for (const node of nodes) for (const child of node.children ?? []) parents.set(child, node)
  const times = timesOf(profile)
  const frames = new Map(nodes.map((node) => [node.id, frameOf(node, moduleOf)]))
  const stacks: SampledStack[] = []
  for (const node of nodes) {
    const micros = times.get(node.id) ?? 0
    if (micros === 0 || node.callFrame.functionName === IDLE) continue
    const stack: Frame[] = []
    let at: ProfileNode | undefined = node
    while (at !== undefined && (parents.has(at.id) || at === node)) {
      stack.push(frames.get(at.id) as Frame)
      at = parents.get(at.id)
    }
    stacks.push({ frames: stack, micros })
  }
  return stacks
}

/** Returns the microseconds in which each node was on top of the stack. */
function timesOf({ samples, timeDeltas }: CpuProfile): ReadonlyMap<number, number> {
  const times = new Map<number, number>()
  for (const [index, id] of samples.entries()) {
    // A sample lasts until the next one.
    const us = timeDeltas[index + 1] ?? 0
    times.set(id, (times.get(id) ?? 0) + Math.max(0, us))
  }
  return times
}

function frameOf({ callFrame }: ProfileNode, moduleOf: ModuleOf): Frame {
  const { functionName, url } = callFrame
  return {
    name: functionName === '' ? '(anonymous)' : functionName,
    module: url === '' ? undefined : moduleOf(callFrame),
  }
}

/** Module name of lines before the bundle's first module. */
const BUNDLE = 'bundle'
const DIGITS = 2
/** esbuild writes a header with the path before each module. */
const MODULE_HEADER = /^\/\/ (?:\.\.\/)*([\w@./-]+\.[cm]?[jt]s)$/
const PACKAGE = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//

/** Returns the modules of the bundle with this text, by line. */
export function moduleFinder(bundle: string): ModuleOf {
  const modules: string[] = []
  let current = BUNDLE
  for (const line of bundle.split('\n')) {
    const [, path] = MODULE_HEADER.exec(line) ?? []
    if (path !== undefined) current = PACKAGE.exec(path)?.[1] ?? path
    modules.push(current)
  }
  return ({ lineNumber }) => modules[lineNumber] ?? BUNDLE
}

/** Returns the microseconds per request in which the isolate was busy. */
export const busyMicrosOf = (stacks: readonly SampledStack[], requests: number): number =>
  rounded(sumOf(stacks, ({ micros }) => micros) / requests, DIGITS)
