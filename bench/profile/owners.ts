/** Divides the time of a CPU profile of Node among packages and folders, by the running function. No I/O. */
import { rounded, sumOf } from '../measure/statistics.ts'
import type { ModuleOf, SampledStack } from './summary.ts'

const GARBAGE = '(garbage collector)'
/** V8's name for work outside of JavaScript, such as the event loop and the parser of HTTP. */
const NATIVE = '(program)'
const PACKAGE = /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//
const FOLDER = /\/((?:src|bench)\/[^/]+)\//
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

/** Returns the package, or the folder of this project, of a module that Node has loaded. */
export const ownerOfUrl: ModuleOf = ({ url }) =>
  url.startsWith('node:') ? 'Node' : (PACKAGE.exec(url)?.[1] ?? FOLDER.exec(url)?.[1] ?? url)

/** Returns the time per request of each owner, the largest first. */
export function ownerTimes(stacks: readonly SampledStack[], requests: number): OwnerTime[] {
  const busy = sumOf(stacks, ({ micros }) => micros)
  const byOwner = new Map<string, number>()
  for (const { frames, micros } of stacks) {
    const owner = ownerOf(frames[0])
    byOwner.set(owner, (byOwner.get(owner) ?? 0) + micros)
  }
  const small = [...byOwner].filter(([, micros]) => micros < MIN_SHARE * busy)
  for (const [owner] of small) byOwner.delete(owner)
  if (small.length > 0)
    byOwner.set(
      SMALLER,
      sumOf(small, ([, micros]) => micros),
    )
  return [...byOwner]
    .sort(([, a], [, b]) => b - a)
    .map(([owner, micros]) => ({
      owner,
      micros: rounded(micros / requests, DIGITS),
      share: rounded(micros / busy, SHARE_DIGITS),
    }))
}

function ownerOf(frame: SampledStack['frames'][number] | undefined): string {
  if (frame === undefined || frame.name === NATIVE) return 'native code'
  if (frame.name === GARBAGE) return 'garbage collection'
  return frame.module ?? `platform: ${frame.name}`
}
