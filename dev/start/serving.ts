/** Keeps serving while a developer edits the policy, even after mistakes. */
import { dirname } from 'node:path'
import { visible } from '../../cli/text.ts'
import type { Project } from './project.ts'
import { watchSaves } from './saves.ts'
import { complaint, complaintOfFailure, type Wrangler } from './wrangler.ts'

/** Blocks of wrangler's output that are reported in fewer words. */
const FAILURE = /^✘ \[ERROR\] service core:user|runtime failed to start|^🪵|Logs were written/
const BUILD_FAILED = 'Build failed with'

/** The parts of a running gateway. */
export interface Serving {
  readonly workers: Wrangler
  /** Restarts the Workers after they have ended, and resolves when they are ready. */
  serveAgain(): Promise<Wrangler>
  /** Requests of the person to start the Workers again. */
  readonly restart: Restart
  /** Rejects if a Redis that was started here ends unexpectedly. Never resolves. */
  readonly redisDied: Promise<never>
}

export interface Restart {
  /** Ends a wait. */
  request(): void
  /** Resolves at the next request. */
  requested(): Promise<'restart'>
}

export function createRestart(): Restart {
  let next = Promise.withResolvers<'restart'>()
  return {
    request() {
      next.resolve('restart')
      next = Promise.withResolvers()
    },
    requested: () => next.promise,
  }
}

/** Port: what is known of the policy besides what the Workers report. */
export interface FollowedPolicy {
  /** Prints what has changed after each save, until `signal`. Mistakes are not printed: `located` does that. */
  reportChanges(signal: AbortSignal, progress: (what: string) => void): void
  /** Returns a message, with places and suggestions if it is about a policy with mistakes. */
  located(message: string): Promise<string>
}

export interface KeepServingOptions {
  readonly project: Project
  /** Undefined: the default policy. */
  readonly policyFile: string | undefined
  readonly signal: AbortSignal
  readonly progress: (what: string) => void
  /** Adds places and suggestions to the message about a policy with mistakes. */
  readonly located: (message: string) => Promise<string>
}

/**
 * Serves until the Workers end for good, and throws the reason. A mistake in a saved policy only
 * interrupts them: Redis continues to run with its data, and each later save is tried until one
 * starts. Also reports when a saved relation model does not match its JSON.
 */
export async function keepServing(
  { workers: first, serveAgain, redisDied, restart }: Serving,
  { project, policyFile, signal, progress, located }: KeepServingOptions,
): Promise<never> {
  const { root } = project
  const roots = policyFile === undefined ? [root] : [root, dirname(policyFile)]
  const saves = watchSaves(roots, signal, (name) => {
    if (name.endsWith('.fga')) project.checkModel().catch(({ message }) => progress(message))
  })

  /** Tries at once, because a correction may have been saved while the Workers were ending. */
  async function mended(mistake: string): Promise<Wrangler> {
    progress(await located(mistake))
    for (let reported = mistake; ; reported = '') {
      const seen = saves.count()
      try {
        return await serveAgain()
      } catch (error) {
        signal.throwIfAborted()
        const { message } = error as Error
        if (message !== reported) progress(await located(message))
      }
      if (saves.count() === seen)
        progress('no request is served until the mistake is corrected and saved')
      await Promise.race([saves.after(seen), restart.requested(), redisDied])
      signal.throwIfAborted()
    }
  }

  for (let workers = first; ; ) {
    const code = await Promise.race([workers.ended, restart.requested(), redisDied])
    signal.throwIfAborted()
    if (code === 'restart') {
      await workers.stop()
      workers = await serveAgain().catch((error: Error) => mended(error.message))
      progress('ready again')
      continue
    }
    const mistake = complaintOfFailure(workers.lines())
    if (mistake === undefined)
      throw new Error(`wrangler ended unexpectedly (${code})\n${complaint(workers.lines())}`.trim())
    workers = await mended(mistake)
    progress('ready again')
  }
}

export interface FollowOptions {
  /** URL of the gateway. */
  readonly url: string
  readonly signal: AbortSignal
  readonly print: (line: string) => void
  readonly progress: (what: string) => void
  /** Shows a line that is a decision. Returns whether it was one. */
  readonly decided: (line: string) => boolean
}

/**
 * Prints wrangler's unsolicited output, which is the Workers' warnings and errors. Omits what
 * `keepServing` reports itself. After a failed build, reports that requests wait.
 */
export function followWorkers(
  workers: Wrangler,
  { url, signal, print, progress, decided }: FollowOptions,
): void {
  let isFailure = false
  let isWaiting = false

  /** Reports when the build works again. Until then, wrangler delays requests. */
  async function reportWhenMended() {
    isWaiting = true
    progress('requests wait until the mistake is corrected')
    const answered = await fetch(`${url}/-/healthz`, { signal }).then(
      ({ status }) => status < 500,
      () => false,
    )
    isWaiting = false
    if (answered) progress('ready again')
  }

  workers.follow((line) => {
    if (signal.aborted || decided(line)) return
    if (/^\S/.test(line)) isFailure = FAILURE.test(line)
    if (isFailure || line.trim() === '') return
    print(line.split('\t').map(visible).join('\t'))
    if (line.includes(BUILD_FAILED) && !isWaiting) void reportWhenMended()
  })
}
