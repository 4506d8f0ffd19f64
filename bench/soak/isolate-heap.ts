/** Measures the heap of the gateway's own isolate, without the other isolates of its workerd. */

import { portsOf } from '../processes/proc.ts'
import { type Heap, openHeap, targetsOf } from '../stack/inspector.ts'

/** Wrangler's name for the isolate, from the name in `wrangler.toml`. */
const ISOLATE = 'core:user:portcullis'
const HOST = '127.0.0.1'
const BYTES_PER_MEGABYTE = 1_048_576

export interface IsolateHeap {
  /**
   * Finds the inspector. Connects to every port of the process, so call it before the load starts.
   */
  find(): Promise<void>
  /**
   * Returns the JavaScript heap after a garbage collection in MB, or undefined if it is not
   * available. The isolate must be busy: it collects garbage when it runs next. Returns undefined
   * during another call.
   */
  megabytes(): Promise<number | undefined>
  /** Forgets the inspector, because the process has ended. */
  forget(): void
}

/**
 * Creates the measurement. `workerd` returns the process with the Workers. It only requests a
 * garbage collection and the heap size of this one isolate: other inspector calls disturbed the
 * load.
 */
export function createIsolateHeap(workerd: () => number | undefined): IsolateHeap {
  let authority: string | undefined
  let heap: Heap | undefined
  let isAsking = false

  function close(): void {
    heap?.close()
    heap = undefined
  }

  return {
    async find() {
      const pid = workerd()
      authority = pid === undefined ? undefined : await inspectorOf(pid)
    },
    async megabytes() {
      if (isAsking || authority === undefined) return undefined
      isAsking = true
      try {
        heap ??= await openHeap(authority, ISOLATE)
        return (await heap.usedBytes()) / BYTES_PER_MEGABYTE
      } catch {
        // The process was killed, or is too busy to respond.
        close()
        return undefined
      } finally {
        isAsking = false
      }
    },
    forget() {
      close()
      authority = undefined
    },
  }
}

/** Returns the address of the process's inspector that has the isolate, if any. */
async function inspectorOf(pid: number): Promise<string | undefined> {
  for (const port of portsOf(pid)) {
    const authority = `${HOST}:${port}`
    const targets = await targetsOf(authority).catch(() => [])
    if (Array.isArray(targets) && targets.some(({ id }) => id === ISOLATE)) return authority
  }
  return undefined
}
