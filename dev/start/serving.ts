/** Goes on serving while somebody works on the policy, mistakes included. */
import { watch } from 'node:fs'
import { dirname, join } from 'node:path'
import { ROOT } from './settings.ts'
import { complaint, type Wrangler } from './wrangler.ts'

/** An editor saves in several steps. */
const SETTLING_MS = 200
const FAILED_TO_START = 'runtime failed to start'
/** Blocks of wrangler's output that {@link complaint} puts into a line or two. */
const FAILURE = new RegExp(
  `^✘ \\[ERROR\\] service core:user|${FAILED_TO_START}|^🪵|Logs were written`,
)

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
 * interrupts them: Redis stays, with what it holds, and each save is tried until one starts.
 */
export async function keepServing(
  { workers: first, serveAgain, redisDied }: Serving,
  { policyFile, signal, progress }: KeepServingOptions,
): Promise<never> {
  async function mended(mistake: string): Promise<Wrangler> {
    progress(`${mistake}\nportcullis: nothing is served until that is mended and saved`)
    await Promise.race([nextSave(policyFile, signal), redisDied])
    try {
      return await serveAgain()
    } catch (error) {
      signal.throwIfAborted()
      return mended((error as Error).message)
    }
  }
  for (let workers = first; ; ) {
    const code = await Promise.race([workers.ended, redisDied])
    signal.throwIfAborted()
    const why = complaint(workers.lines())
    const isMistake = workers.lines().some((line) => line.includes(FAILED_TO_START))
    if (!isMistake) throw new Error(`wrangler ended by itself (${code})\n${why}`.trim())
    workers = await mended(why)
    progress('ready again')
  }
}

/** Passes lines on, but not those about a failure that `keepServing` tells in its own words. */
export function exceptFailures(tell: (line: string) => void): (line: string) => void {
  let isFailure = false
  return (line) => {
    if (/^\S/.test(line)) isFailure = FAILURE.test(line)
    if (!isFailure && line.trim() !== '') tell(line)
  }
}

/**
 * Resolves once a file has been saved beside the policy, or in the checkout's `src` and `workers`;
 * what lies deeper beside the policy is not watched. Rejects with the reason of `signal`.
 */
async function nextSave(policyFile: string | undefined, signal: AbortSignal): Promise<void> {
  const saved = new AbortController()
  const until = AbortSignal.any([signal, saved.signal])
  await new Promise<void>((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    function look(folder: string, recursive: boolean) {
      const watcher = watch(folder, { signal: until, recursive }, (_, name) => {
        if (!name?.startsWith('.')) resolve()
      })
      watcher.on('error', reject)
    }
    look(policyFile === undefined ? ROOT : dirname(policyFile), false)
    look(join(ROOT, 'src'), true)
    look(join(ROOT, 'workers'), true)
  }).finally(() => saved.abort())
  await new Promise((resolve) => setTimeout(resolve, SETTLING_MS))
  signal.throwIfAborted()
}
