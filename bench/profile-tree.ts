/** A CPU profile as a tree: what its nodes are called, who called them, how long they took. No I/O. */
import type { CpuProfile, ProfileNode } from './inspector.ts'

/** What the thread does while nothing asks for it. */
export const IDLE = '(idle)'

/** A function at a place of the call tree. */
export interface Frame {
  readonly name: string
  /** A file of ours or a package; of the platform's own functions `undefined`, as they have no source. */
  readonly module: string | undefined
  /** Line of the bundle, from 0; tells functions of one name apart. */
  readonly line: number
}

/** What was on top of the stack for so long. */
export interface SampledStack {
  /** From the top of the stack, which is where the time went, down to the entry; never empty. */
  readonly frames: readonly Frame[]
  readonly micros: number
}

/** Every place of the tree where time was spent, but for idling. The root itself is left out. */
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

/** The node that called each; the root has none. */
export function parentsOf({ nodes }: CpuProfile): ReadonlyMap<number, ProfileNode> {
  const parents = new Map<number, ProfileNode>()
  for (const node of nodes) for (const child of node.children ?? []) parents.set(child, node)
  return parents
}

/** Whether it is the platform's own: those have no source. */
export function isPlatform({ callFrame }: ProfileNode): boolean {
  return callFrame.url === ''
}

/** Microseconds that each node was on top of the stack. */
export function timesOf({ samples, timeDeltas }: CpuProfile): ReadonlyMap<number, number> {
  const times = new Map<number, number>()
  for (const [index, id] of samples.entries()) {
    // A sample lasts until the next one begins.
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
