/** What credentials that a gateway knows take of its heap, and whether that ends. */
import type { MemorySample } from '../soak/memory.ts'
import { type Heap, residentBytesOf } from './heap.ts'
import type { Presenter } from './presenter.ts'

const BYTES_PER_MEGABYTE = 1_048_576
/** For what comes and goes with code, and what garbage collection leaves for later. */
export const SLACK = 1.25
/** Compiles what runs often, and fills what is filled once. */
const WARM_UP_REQUESTS = 1_000

/** After so many credentials were shown, each of another caller. */
export interface Level {
  readonly presented: number
  readonly heapBytes: number
  readonly residentBytes: number
}

export interface Watched {
  readonly heap: Heap
  readonly pid: number
  readonly presenter: Presenter
}

/** Reads both; the heap after a collection of garbage. */
export async function levelOf({ heap, pid }: Watched, presented: number): Promise<Level> {
  return { presented, heapBytes: await heap.usedBytes(), residentBytes: residentBytesOf(pid) ?? 0 }
}

/** Shows one credential so often that the isolate is warm. */
export async function warmUp({ presenter }: Watched, credential: string): Promise<void> {
  await presenter.present(Array.from({ length: WARM_UP_REQUESTS }, () => credential))
}

/** Levels at each of `counts`, which rise; the first is before any of `credentials` was shown. */
export async function fill(
  watched: Watched,
  credentials: readonly string[],
  counts: readonly number[],
): Promise<readonly Level[]> {
  const levels = [await levelOf(watched, 0)]
  let shown = 0
  for (const count of counts) {
    await watched.presenter.present(credentials.slice(shown, count))
    shown = count
    levels.push(await levelOf(watched, count))
  }
  return levels
}

/** Heap that each of the first credentials took, bytes. They must all fit into the cache. */
export function bytesEach([before, first]: readonly Level[]): number {
  if (before === undefined || first === undefined) throw new RangeError('bytesEach: two levels')
  return (first.heapBytes - before.heapBytes) / first.presented
}

/**
 * Throws an `Error` of one line if the last of `levels` holds more than `SLACK` times what `most`
 * credentials would take; `most` is what fits into the cache.
 */
export function refuseGrowth(levels: readonly Level[], most: number): void {
  const [before] = levels
  const last = levels.at(-1)
  if (before === undefined || last === undefined) throw new RangeError('refuseGrowth: no levels')
  const held = (last.heapBytes - before.heapBytes) / bytesEach(levels)
  if (held > most * SLACK)
    throw new Error(`the heap holds as much as ${Math.round(held)} credentials, not ${most}`)
}

/** The heap and the resident memory at one moment. */
export interface Moment {
  readonly heap: MemorySample
  readonly resident: MemorySample
}

/** Shows `credentials` over and over for so long, and reads both after each slice of them. */
export async function soakFor(
  watched: Watched,
  credentials: readonly string[],
  { seconds, slice }: { readonly seconds: number; readonly slice: number },
): Promise<readonly Moment[]> {
  const startedMs = performance.now()
  const since = () => (performance.now() - startedMs) / 1_000
  const moments: Moment[] = []
  for (let at = 0; since() < seconds; at = (at + slice) % credentials.length) {
    await watched.presenter.present(credentials.slice(at, at + slice))
    const { heapBytes, residentBytes } = await levelOf(watched, 0)
    const common = { seconds: since(), answered: watched.presenter.answered() }
    moments.push({
      heap: { ...common, megabytes: heapBytes / BYTES_PER_MEGABYTE },
      resident: { ...common, megabytes: residentBytes / BYTES_PER_MEGABYTE },
    })
  }
  return moments
}
