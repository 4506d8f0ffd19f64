/** Reads a CPU profile: its stacks, and its time by module. No I/O. */
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

/** Returns every position of the tree where time was spent, without idle time and the root. */
export function sampledStacks(
  profile: CpuProfile,
  moduleOf: (line: number) => string,
): readonly SampledStack[] {
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

function frameOf({ callFrame }: ProfileNode, moduleOf: (line: number) => string): Frame {
  const { functionName, lineNumber, url } = callFrame
  return {
    name: functionName === '' ? '(anonymous)' : functionName,
    module: url === '' ? undefined : moduleOf(lineNumber),
  }
}

export interface ModuleTime {
  /** A file of this project, the name of a package, or internal work of V8. */
  readonly module: string
  /** Microseconds per request, without called functions. */
  readonly selfMicros: number
  /** Time in platform functions that the module called itself. */
  readonly platformMicros: number
  /** Share of the time in which the isolate was busy. */
  readonly share: number
}

/** Module name of lines before the bundle's first module. */
const BUNDLE = 'bundle'
const DIGITS = 2
const SHARE_DIGITS = 4
/** esbuild writes a header with the path before each module. */
const MODULE_HEADER = /^\/\/ (?:\.\.\/)*([\w@./-]+\.[cm]?[jt]s)$/
const PACKAGE = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//

/** Returns a function that returns the module of a line (from 0) of the bundle with this text. */
export function moduleFinder(bundle: string): (line: number) => string {
  const modules: string[] = []
  let current = BUNDLE
  for (const line of bundle.split('\n')) {
    const [, path] = MODULE_HEADER.exec(line) ?? []
    if (path !== undefined) current = PACKAGE.exec(path)?.[1] ?? path
    modules.push(current)
  }
  return (line) => modules[line] ?? BUNDLE
}

/** Returns the microseconds per request in which the isolate was busy. */
export const busyMicrosOf = (stacks: readonly SampledStack[], requests: number): number =>
  rounded(sumOf(stacks, ({ micros }) => micros) / requests, DIGITS)

/** Returns the time of each module per request, the longest first. */
export function moduleTimes(
  stacks: readonly SampledStack[],
  requests: number,
): readonly ModuleTime[] {
  const busy = sumOf(stacks, ({ micros }) => micros)
  const modules = new Map<string, { self: number; platform: number }>()
  for (const { frames, micros } of stacks) {
    const caller = frames.find(({ module }) => module !== undefined)
    const name = caller?.module ?? 'V8 and workerd'
    const times = modules.get(name) ?? { self: 0, platform: 0 }
    times[frames[0] === caller ? 'self' : 'platform'] += micros
    modules.set(name, times)
  }
  const each = (us: number) => rounded(us / requests, DIGITS)
  return [...modules]
    .toSorted(([, a], [, b]) => b.self + b.platform - a.self - a.platform)
    .map(([module, { self, platform }]) => ({
      module,
      selfMicros: each(self),
      platformMicros: each(platform),
      share: rounded((self + platform) / busy, SHARE_DIGITS),
    }))
}
