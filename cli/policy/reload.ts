/** Replaces the policy of a running server, and logs the change or the mistakes. */
import { type Mistake, textOf } from '../../src/problems/mistake.ts'
import type { PolicyChange } from '../../src/runtimes/node/index.ts'
import { mistakesOf } from '../failure.ts'
import type { Log } from '../server-log.ts'
import type { Change } from './change.ts'
import { deployedBy } from './deployed-by.ts'
import { diffPolicies } from './diff.ts'
import { findingsOf } from './mistakes.ts'
import { type Place, readSource } from './source.ts'
import type { PolicyVersion, PolicyVersions } from './versions.ts'

/** In a line of the log. The audit event has its own bound. */
const MAX_LOGGED = 20

export interface PolicyReloadOptions {
  readonly versions: PolicyVersions
  /** The version that is used now. */
  readonly current: PolicyVersion
  readonly file: string
  /** Uses another version from then on. Throws if it cannot. */
  readonly use: (next: PolicyVersion, how: PolicyChange) => Promise<void>
  readonly log: Log
}

/**
 * Returns the function that loads the files again and uses the new version. It resolves to false if the old
 * one stays, after each mistake is logged. It never rejects, and calls come one after the other.
 */
export function policyReload({ versions, current, file, use, log }: PolicyReloadOptions) {
  let used = current

  async function reload(by: string, audited: boolean): Promise<boolean> {
    try {
      const next = await versions.load()
      const changes = changesBetween(used, next)
      const before = used.digest
      const isSame = next.digest === before && changes?.length === 0
      const texts = changes?.map(({ effect, text }) => `${effect}: ${text}`)
      await use(next, {
        digest: next.digest,
        // A signal does not say who sent it.
        by: `${by} (${deployedBy(file)})`,
        changes: texts,
        audited: audited && !isSame,
      })
      used = next
      if (isSame) log('info', 'policy: not changed', { by, digest: before })
      else
        log('info', 'policy: changed', {
          by,
          before,
          digest: next.digest,
          changes: texts?.slice(0, MAX_LOGGED),
          count: texts?.length,
        })
      return true
    } catch (error) {
      logMistakes(error as Error, file, by, log)
      return false
    }
  }

  let last: Promise<unknown> = Promise.resolve()
  return (by: string, audited = true): Promise<boolean> => {
    const result = last.then(() => reload(by, audited))
    last = result
    return result
  }
}

/** Undefined: the policies cannot be compared. */
function changesBetween(one: PolicyVersion, another: PolicyVersion): readonly Change[] | undefined {
  try {
    return diffPolicies(one.policy, another.policy)
  } catch {
    return undefined
  }
}

/** Logs a line for each mistake, with its place if it is one of the policy. */
function logMistakes(error: Error, file: string, by: string, log: Log): void {
  const isOfPolicy = error.name === 'Misconfigured' && error.message.startsWith('The policy')
  if (!isOfPolicy) {
    const texts = error.name === 'Misconfigured' ? mistakesOf(error).map(textOf) : [error.message]
    for (const text of texts) log('error', `policy: the old one stays; ${text}`, { by })
    return
  }
  for (const { place, message, suggestion } of locatedMistakes(mistakesOf(error), file)) {
    const at = place && { file: place.file, line: place.line, column: place.column }
    log('error', `policy: the old one stays; ${message}`, { by, ...at, suggestion })
  }
}

export interface LocatedMistake {
  readonly place: Place | undefined
  readonly message: string
  readonly suggestion?: string | undefined
}

/** Returns the mistakes of the policy in `file` with their places in its source, and suggestions. */
export function locatedMistakes(
  mistakes: readonly Mistake[],
  file: string,
): readonly LocatedMistake[] {
  const source = sourceOf(file)
  return findingsOf(mistakes).map(({ path, message, suggestion }) => ({
    place: source?.placeOf({ path }),
    message,
    suggestion,
  }))
}

function sourceOf(file: string) {
  try {
    return readSource(file)
  } catch {
    return undefined
  }
}
