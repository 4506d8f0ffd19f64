/**
 * The fence around a master: after a silence, the master must prove that it is still the master.
 *
 * A master that was paused, and replaced meanwhile, answers calls before it learns that it was
 * replaced. Its replies miss revocations. But a replacement needs a silence of the whole node timeout.
 * So a master that has never been silent for that long, as this process saw it, was not replaced.
 */

/** The owners are asked so long after the first sign of life, so that they have heard of it too. */
const SETTLE_MS = 150

/** The replies of a master that was silent are not used. */
export class SilentMaster extends Error {
  override readonly name = 'SilentMaster'
  constructor() {
    super('the master was silent for longer than the fence allows')
  }
}

export interface FenceOptions {
  /** The longest silence, in milliseconds. `Infinity`: no silence is too long. */
  readonly fenceMs: number
  /** Sends `PING` to the master. Throws without a reply. */
  readonly ping: () => Promise<unknown>
  /** Runs before each proof. Default: nothing. */
  readonly prepare?: () => Promise<void>
  /** Asks others who the master is. Throws if it is another one, or if there is no answer. */
  readonly confirm: () => Promise<void>
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
}

/** Creates a closed fence. */
export function createFence({ fenceMs, prepare, ping, confirm, now, sleep }: FenceOptions) {
  let isOpen = false
  let lastSentMs = Number.NEGATIVE_INFINITY
  let closings = 0
  /** Changes when the fence closes: a proof that began before is void. */
  let round = 0
  let proof: Promise<void> | undefined
  let failure: unknown

  function close(): void {
    if (isOpen) closings += 1
    isOpen = false
    round += 1
  }

  async function prove(): Promise<void> {
    await prepare?.()
    const begun = round
    const firstMs = now()
    await ping()
    await sleep(SETTLE_MS)
    await confirm()
    const secondMs = now()
    await ping()
    if (begun !== round || now() - firstMs > fenceMs) throw new SilentMaster()
    lastSentMs = secondMs
    isOpen = true
  }

  return {
    /** Whether replies are believed. False at first. */
    isOpen: (): boolean => isOpen,
    /**
     * Notes the reply to a command that was sent at `sentMs`, and returns whether it may be used. The
     * master was alive at some moment after `sentMs`. The moment of the reply says less: it may have
     * waited in a buffer while the master was paused. `nowMs` is the time now, if it is known.
     */
    heard(sentMs: number, nowMs: number = now()): boolean {
      if (!isOpen) return false
      if (nowMs - lastSentMs > fenceMs) {
        close()
        return false
      }
      if (sentMs > lastSentMs) lastSentMs = sentMs
      return true
    },
    /** Resolves when the master has proven itself. Concurrent callers share a proof. Throws why it failed. */
    proved(): Promise<void> {
      if (isOpen) return Promise.resolve()
      proof ??= prove()
        .then(
          () => {
            failure = undefined
          },
          (cause) => {
            failure = cause
            throw cause
          },
        )
        .finally(() => {
          proof = undefined
        })
      return proof
    },
    /** Returns the milliseconds since the last command that was answered. */
    silentMs: (): number => now() - lastSentMs,
    /** Believes no reply until the next proof. */
    close,
    /** How often a silence was too long, or the socket was lost. */
    closings: (): number => closings,
    /** Returns why the last proof failed. Undefined after one that succeeded. */
    failure: (): unknown => failure,
  }
}
