/** The heap of the gateway's own isolate, apart from what else its workerd runs. */
import { type Heap, openHeap } from '../memory/heap.ts'
import { targetsOf } from '../memory/inspector-session.ts'
import { portsOf } from '../process-times.ts'

/** As wrangler calls it: by the name in `wrangler.toml`. */
const ISOLATE = 'core:user:portcullis'
const HOST = '127.0.0.1'
const BYTES_PER_MEGABYTE = 1_048_576

export interface IsolateHeap {
  /** Looks for the inspector. Asks every port of the process, so before there is any load. */
  find(): Promise<void>
  /**
   * What JavaScript holds once garbage is collected, MB; undefined where it cannot be asked. The isolate
   * must be busy: it collects when it runs next. Asked again meanwhile, it is undefined.
   */
  megabytes(): Promise<number | undefined>
  /** The process has ended: the next one has to be found. */
  forget(): void
}

/**
 * Makes the question, to the inspector of `workerd`, the process with the Workers. It asks for nothing
 * but a collection of garbage and the size of this one isolate: other calls have disturbed it.
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
        // It was killed meanwhile, or is too busy to say.
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

/** Which of the process's ports is that of an inspector that knows the isolate, if any. */
async function inspectorOf(pid: number): Promise<string | undefined> {
  for (const port of portsOf(pid)) {
    const authority = `${HOST}:${port}`
    const targets = await targetsOf(authority).catch(() => [])
    if (Array.isArray(targets) && targets.some(({ id }) => id === ISOLATE)) return authority
  }
  return undefined
}
