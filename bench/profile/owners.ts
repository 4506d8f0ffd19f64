/** Divides the time of a CPU profile among packages and folders, by the running function. No I/O. */
import { rounded, sumOf } from '../measure/statistics.ts'
import type { CpuProfile, ProfileNode } from '../stack/inspector.ts'

const IDLE = '(idle)'
const ROOT = '(root)'
/** V8's name for work outside of JavaScript, such as the event loop and the parser of HTTP. */
const NATIVE = '(program)'
const GARBAGE = '(garbage collector)'
const PACKAGE = /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)\//
const FOLDER = /^(?:.*\/)?((?:src|bench)\/(?:(?:features|access|runtimes)\/)?[^/]+)\//
const DIGITS = 2
const SHARE_DIGITS = 4
/** Smaller shares are one row. */
const MIN_SHARE = 0.005
const SMALLER = 'smaller ones'

export interface OwnerTime {
  /** A package, a folder of this project, `Node`, a function of the platform, or garbage collection. */
  readonly owner: string
  /** Microseconds per request. */
  readonly micros: number
  /** Share of the time in which the thread was busy. */
  readonly share: number
}

/** Returns the path or the address of the module of a function. */
export type PathOf = (place: { readonly url: string; readonly lineNumber: number }) => string

/** For a process whose modules are files. */
export const pathOfUrl: PathOf = ({ url }) => url

/** esbuild writes a header with the path before each module. */
const MODULE_HEADER = /^\/\/ ((?:\.\.\/)*[\w@./-]+\.[cm]?[jt]s)$/

/** Returns the paths of the modules in the text of a bundle, by line. */
export function pathsInBundle(bundle: string): PathOf {
  const paths: string[] = []
  let current = 'bundle'
  for (const line of bundle.split('\n')) {
    current = MODULE_HEADER.exec(line)?.[1] ?? current
    paths.push(current)
  }
  return ({ lineNumber }) => paths[lineNumber] ?? 'bundle'
}

/** Returns the time per request of each owner, the largest first, and of all of them. */
export function ownerTimes(profile: CpuProfile, requests: number, pathOf: PathOf) {
  const times = timesOf(profile)
  const byOwner = new Map<string, number>()
  for (const node of profile.nodes) {
    const { functionName } = node.callFrame
    const micros = times.get(node.id) ?? 0
    if (micros === 0 || functionName === IDLE || functionName === ROOT) continue
    const owner = ownerOf(node, pathOf)
    byOwner.set(owner, (byOwner.get(owner) ?? 0) + micros)
  }
  const busy = sumOf([...byOwner.values()], (micros) => micros)
  const small = [...byOwner].filter(([, micros]) => micros < MIN_SHARE * busy)
  for (const [owner] of small) byOwner.delete(owner)
  if (small.length > 0)
    byOwner.set(
      SMALLER,
      sumOf(small, ([, micros]) => micros),
    )
  const owners: OwnerTime[] = [...byOwner]
    .sort(([, a], [, b]) => b - a)
    .map(([owner, micros]) => ({
      owner,
      micros: rounded(micros / requests, DIGITS),
      share: rounded(micros / busy, SHARE_DIGITS),
    }))
  return { owners, busyMicros: rounded(busy / requests, DIGITS) }
}

/** Returns the microseconds in which each function was on top of the stack. */
function timesOf({ samples, timeDeltas }: CpuProfile): ReadonlyMap<number, number> {
  const times = new Map<number, number>()
  for (const [index, id] of samples.entries()) {
    // A sample lasts until the next one.
    const micros = timeDeltas[index + 1] ?? 0
    times.set(id, (times.get(id) ?? 0) + Math.max(0, micros))
  }
  return times
}

function ownerOf({ callFrame }: ProfileNode, pathOf: PathOf): string {
  const { functionName, url } = callFrame
  if (functionName === NATIVE) return 'native code'
  if (functionName === GARBAGE) return 'garbage collection'
  if (url === '') return `platform: ${functionName}`
  const path = pathOf(callFrame)
  if (path.startsWith('node:')) return 'Node'
  return PACKAGE.exec(path)?.[1] ?? FOLDER.exec(path)?.[1] ?? path
}
