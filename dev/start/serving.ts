/** Goes on serving while somebody works on the policy, mistakes included. */
import { dirname } from 'node:path'
import { checkModelIn } from '../model/file.ts'
import { watchSaves } from './saves.ts'
import { ROOT } from './settings.ts'
import { complaint, complaintOfFailure, type Wrangler } from './wrangler.ts'

/** Blocks of wrangler's output that are told in fewer words. */
const FAILURE = /^✘ \[ERROR\] service core:user|runtime failed to start|^🪵|Logs were written/
const BUILD_FAILED = 'Build failed with'

/** What has been started and is ready. */
export interface Serving {
  readonly workers: Wrangler
  /** Starts the Workers anew, once they have ended, and resolves when they are ready. */
  serveAgain(): Promise<Wrangler>
  /** Rejects when a Redis that was started here ends by itself; never resolves. */
  readonly redisDied: Promise<never>
}

export interface KeepServingOptions {
  /** Undefined: the one that ships. */
  readonly policyFile: string | undefined
  readonly signal: AbortSignal
  readonly progress: (what: string) => void
}

/**
 * Serves until the Workers end for good, and throws why. A mistake that is saved into the policy only
 * interrupts them: Redis stays, with what it holds, and each save is tried until one starts. Says, too,
 * when a relation model was saved whose JSON is not what it says.
 */
export async function keepServing(
  { workers: first, serveAgain, redisDied }: Serving,
  { policyFile, signal, progress }: KeepServingOptions,
): Promise<never> {
  const roots = policyFile === undefined ? [ROOT] : [ROOT, dirname(policyFile)]
  const saves = watchSaves(roots, signal, (name) => {
    if (name.endsWith('.fga')) checkModelIn(ROOT).catch(({ message }) => progress(message))
  })

  /** Tries at once: something better may have been saved while the Workers were ending. */
  async function mended(mistake: string): Promise<Wrangler> {
    progress(mistake)
    for (let told = mistake; ; told = '') {
      const seen = saves.count()
      try {
        return await serveAgain()
      } catch (error) {
        signal.throwIfAborted()
        const { message } = error as Error
        if (message !== told) progress(message)
      }
      if (saves.count() === seen) progress('nothing is served until that is mended and saved')
      await Promise.race([saves.after(seen), redisDied])
      signal.throwIfAborted()
    }
  }

  for (let workers = first; ; ) {
    const code = await Promise.race([workers.ended, redisDied])
    signal.throwIfAborted()
    const mistake = complaintOfFailure(workers.lines())
    if (mistake === undefined)
      throw new Error(`wrangler ended by itself (${code})\n${complaint(workers.lines())}`.trim())
    workers = await mended(mistake)
    progress('ready again')
  }
}

export interface TellingOptions {
  /** Of the gateway. */
  readonly url: string
  readonly signal: AbortSignal
  readonly tell: (line: string) => void
  readonly progress: (what: string) => void
}

/**
 * Passes on what wrangler says without being asked, which is the Workers' own warnings and errors; but
 * not what `keepServing` tells in its own words. Of a build that has failed, what becomes of requests.
 */
export function tellOf(workers: Wrangler, { url, signal, tell, progress }: TellingOptions): void {
  let isFailure = false
  let isWaiting = false

  /** wrangler lets requests wait while there is nothing that could answer them. */
  async function tellWhenMended() {
    isWaiting = true
    progress('requests wait until that is mended')
    const answered = await fetch(`${url}/-/healthz`, { signal }).then(
      ({ ok }) => ok,
      () => false,
    )
    isWaiting = false
    if (answered) progress('ready again')
  }

  workers.follow((line) => {
    if (signal.aborted) return
    if (/^\S/.test(line)) isFailure = FAILURE.test(line)
    if (isFailure || line.trim() === '') return
    tell(line)
    if (line.includes(BUILD_FAILED) && !isWaiting) void tellWhenMended()
  })
}
