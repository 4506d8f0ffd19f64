/** Sums the time of a CPU profile by module and by function. No I/O. */
import type { CpuProfile, ProfileNode } from './inspector.ts'
import { IDLE, isPlatform, parentsOf, timesOf } from './profile-tree.ts'
import { rounded } from './statistics.ts'

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
