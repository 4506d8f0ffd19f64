/** Moves the keys of one server to a cluster, in passes. */
import { setTimeout as sleep } from 'node:timers/promises'
import { importPass, type Pass, type PassOptions } from './import-pass.ts'
import { begin, end, findRefusal, pendingFacts, type Refusal } from './target.ts'

export type { Pass }

export interface ImportOptions extends PassOptions {
  /** Identifies the source. Another one is refused on the same cluster. */
  readonly origin: string
  /** Called before each pass, with its number. */
  readonly onPass: (number: number) => void
}

/** `refused`: nothing was done. `changing`: gateways still write to the source. */
export type Import =
  | { readonly outcome: 'refused'; readonly why: Refusal }
  | { readonly outcome: 'done' | 'changing' | 'pending'; readonly passes: readonly Pass[] }

/** Passes of one call. */
const MAX_PASSES = 5
const PENDING_POLL_MS = 500
const MAX_PENDING_POLLS = 20

/**
 * Runs passes until one changes nothing, at most five. With `isFinal`, the import ends then: no
 * further one is accepted, because gateways may have written to the cluster since. It does not end if
 * the last pass has changed something (`changing`), or if a lane lacks a revocation (`pending`).
 */
export async function importKeys(options: ImportOptions): Promise<Import> {
  const { cluster, origin, isDry, isFinal, merges, now } = options
  const why = merges ? undefined : await findRefusal(cluster, origin)
  if (why !== undefined) return { outcome: 'refused', why }
  if (!isDry) await begin(cluster, origin, merges)
  const passes: Pass[] = []
  let isSettled = false
  for (let number = 1; number <= MAX_PASSES && !isSettled; number++) {
    options.onPass(number)
    const pass = await importPass(options)
    passes.push(pass)
    isSettled = isDry || pass.copied + pass.removed === 0
  }
  if (!isFinal || isDry) return { outcome: 'done', passes }
  if (!isSettled) return { outcome: 'changing', passes }
  // An earlier call may have ended in the middle of a change.
  for (let poll = 0; (await pendingFacts(cluster)) > 0; poll++) {
    if (poll === MAX_PENDING_POLLS) return { outcome: 'pending', passes }
    await sleep(PENDING_POLL_MS)
    await cluster.broadcast?.complete(now)
  }
  await end(cluster, now())
  return { outcome: 'done', passes }
}
