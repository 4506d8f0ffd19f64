/** Reads a CPU profile: its stacks, and its time by module and by function. No I/O. */
import { rounded } from '../measure/statistics.ts'
import type { CpuProfile, ProfileNode } from '../stack/inspector.ts'

/** V8's name for an idle thread. */
const IDLE = '(idle)'

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
function parentsOf({ nodes }: CpuProfile): ReadonlyMap<number, ProfileNode> {
  const parents = new Map<number, ProfileNode>()
  for (const node of nodes) for (const child of node.children ?? []) parents.set(child, node)
  return parents
}

/** Reports whether a node is a platform function, which has no source. */
function isPlatform({ callFrame }: ProfileNode): boolean {
  return callFrame.url === ''
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

function frameOf(node: ProfileNode, moduleOf: (line: number) => string): Frame {
  const { functionName, lineNumber } = node.callFrame
  return {
    name: functionName === '' ? '(anonymous)' : functionName,
    module: isPlatform(node) ? undefined : moduleOf(lineNumber),
    line: lineNumber,
  }
}

export interface FunctionTime {
  readonly name: string
  /** Module of the function. For a platform function, the module that called it. */
  readonly module: string
  /** True for a function of the platform, which has no source. */
  readonly platform: boolean
  /** Microseconds per request, without called functions. */
  readonly selfMicros: number
  /** Share of the time in which the isolate was busy. */
  readonly share: number
}

export interface ModuleTime {
  /** A file of this project, the name of a package, or internal work of V8. */
  readonly module: string
  readonly selfMicros: number
  /** Time in platform functions that the module called itself. */
  readonly platformMicros: number
  readonly share: number
}

export interface ProfileSummary {
  /** Microseconds per request in which the isolate was busy. */
  readonly busyMicros: number
  readonly modules: readonly ModuleTime[]
  readonly functions: readonly FunctionTime[]
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

/** Summarises a profile of a run with this number of requests. */
export function summarise(
  profile: CpuProfile,
  requests: number,
  moduleOf: (line: number) => string,
): ProfileSummary {
  const times = timesOf(profile)
  const parents = parentsOf(profile)
  const callerOf = (node: ProfileNode) => {
    let at: ProfileNode | undefined = node
    while (at !== undefined && isPlatform(at)) at = parents.get(at.id)
    return at
  }

  const functions = new Map<
    string,
    { of: Omit<FunctionTime, 'selfMicros' | 'share'>; us: number }
  >()
  let busy = 0
  for (const node of profile.nodes) {
    const us = times.get(node.id) ?? 0
    const { functionName } = node.callFrame
    if (us === 0 || functionName === IDLE) continue
    busy += us
    const caller = callerOf(node)
    const module = caller === undefined ? 'V8 and workerd' : moduleOf(caller.callFrame.lineNumber)
    const name = functionName === '' ? '(anonymous)' : functionName
    const platform = isPlatform(node)
    const key = `${module} ${name} ${platform} ${platform ? '' : node.callFrame.lineNumber}`
    const entry = functions.get(key) ?? { of: { name, module, platform }, us: 0 }
    entry.us += us
    functions.set(key, entry)
  }

  const share = (us: number) => rounded(us / busy, SHARE_DIGITS)
  const each = (us: number) => rounded(us / requests, DIGITS)
  const modules = new Map<string, { self: number; platform: number }>()
  for (const { of, us } of functions.values()) {
    const module = modules.get(of.module) ?? { self: 0, platform: 0 }
    module[of.platform ? 'platform' : 'self'] += us
    modules.set(of.module, module)
  }
  return {
    busyMicros: each(busy),
    modules: [...modules]
      .toSorted(([, a], [, b]) => b.self + b.platform - a.self - a.platform)
      .map(([module, { self, platform }]) => ({
        module,
        selfMicros: each(self),
        platformMicros: each(platform),
        share: share(self + platform),
      })),
    functions: [...functions.values()]
      .toSorted((a, b) => b.us - a.us)
      .map(({ of, us }) => ({ ...of, selfMicros: each(us), share: share(us) })),
  }
}
