/** Bounds the heap of a process that serves requests. */
import { setFlagsFromString } from 'node:v8'

/**
 * `--no-allocation-site-pretenuring`: from the first requests, V8 may conclude that requests live long, and create
 * all later ones in the old generation until the process ends.
 *
 * `--heap-growing-percent`: by default V8 collects the old generation when it is four times as large as what survived
 * the last collection. Full token caches survive, and each token that leaves one is garbage there.
 *
 * `--max-semi-space-size`: a size that the process was started with remains that of the main thread. Without 0, it is
 * also that of each later thread, in place of `resourceLimits`.
 */
export const HEAP_FLAGS = [
  '--no-allocation-site-pretenuring',
  '--heap-growing-percent=40',
  '--max-semi-space-size=0',
] as const

/**
 * Sets {@link HEAP_FLAGS} for this process and its threads. Call it before the first request. `NODE_OPTIONS` does not
 * accept the first two.
 */
export function boundHeap(): void {
  for (const flag of HEAP_FLAGS) setFlagsFromString(flag)
}
