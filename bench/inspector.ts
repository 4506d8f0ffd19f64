/**
 * Records the CPU profile of an isolate with workerd's inspector (Chrome DevTools Protocol,
 * `Profiler`).
 */
import { openInspectorSession } from './memory/inspector-session.ts'

/** A function at one position in the call tree. Lines and columns count from 0. */
export interface ProfileNode {
  readonly id: number
  readonly callFrame: {
    readonly functionName: string
    readonly url: string
    readonly lineNumber: number
    readonly columnNumber: number
  }
  /** Ids of the called nodes. */
  readonly children?: readonly number[]
}

export interface CpuProfile {
  readonly nodes: readonly ProfileNode[]
  /** Ids of the nodes that were on top of the stack. */
  readonly samples: readonly number[]
  /** Microseconds before each sample. */
  readonly timeDeltas: readonly number[]
}

/** The sampling interval in microseconds. */
const SAMPLING_INTERVAL_US = 250

/** Profiles the isolate of `service` while `work` runs. `authority` is the inspector's. */
export async function profileWhile(
  authority: string,
  service: string,
  work: () => Promise<unknown>,
): Promise<CpuProfile> {
  const session = await openInspectorSession(authority, service)
  try {
    await session.send('Profiler.enable')
    await session.send('Profiler.setSamplingInterval', { interval: SAMPLING_INTERVAL_US })
    await session.send('Profiler.start')
    await work()
    const { profile } = (await session.send('Profiler.stop')) as { readonly profile: CpuProfile }
    return profile
  } finally {
    session.close()
  }
}
