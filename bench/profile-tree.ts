/** Reads a CPU profile as a tree: names, callers and times of its nodes. No I/O. */
import type { CpuProfile, ProfileNode } from './inspector.ts'

/** V8's name for an idle thread. */
export const IDLE = '(idle)'

/** A function at one position in the call tree. */
export interface Frame {
  readonly name: string
  /**
   * A file of this project or a package. Undefined for platform functions, which have no source.
   */
  readonly module: string | undefined
  /** Line of the bundle, from 0. Distinguishes functions of the same name. */
  readonly line: number
}

/** A stack and the time in which its first frame was on top. */
export interface SampledStack {
  /** From the top of the stack, where the time was spent, down to the entry point. Never empty. */
  readonly frames: readonly Frame[]
  readonly micros: number
}

/** Returns every position of the tree where time was spent, without idle time and the root. */
export function sampledStacks(
  profile: CpuProfile,
  moduleOf: (line: number) => string,
): readonly SampledStack[] {
  const parents = parentsOf(profile)
  const times = timesOf(profile)
  const frames = new Map(profile.nodes.map((node) => [node.id, frameOf(node, moduleOf)]))
  const stacks: SampledStack[] = []
  for (const node of profile.nodes) {
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

/** Returns the caller of each node. The root has none. */
export function parentsOf({ nodes }: CpuProfile): ReadonlyMap<number, ProfileNode> {
  const parents = new Map<number, ProfileNode>()
  for (const node of nodes) for (const child of node.children ?? []) parents.set(child, node)
  return parents
}

/** Reports whether a node is a platform function, which has no source. */
export function isPlatform({ callFrame }: ProfileNode): boolean {
  return callFrame.url === ''
}

/** Returns the microseconds in which each node was on top of the stack. */
export function timesOf({ samples, timeDeltas }: CpuProfile): ReadonlyMap<number, number> {
  const times = new Map<number, number>()
  for (const [index, id] of samples.entries()) {
    // A sample lasts until the next one.
    const us = timeDeltas[index + 1] ?? 0
    times.set(id, (times.get(id) ?? 0) + Math.max(0, us))
  }
  return times
}

function frameOf(node: ProfileNode, moduleOf: (line: number) => string): Frame {
  const { functionName, lineNumber } = node.callFrame
  return {
    name: functionName === '' ? '(anonymous)' : functionName,
    module: isPlatform(node) ? undefined : moduleOf(lineNumber),
    line: lineNumber,
  }
}
