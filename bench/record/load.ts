/** Requests under limits, as they come by a plan and a seed, whatever becomes of them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { seededRandom } from '../../dev/fault-proxy/random.ts'
import type { Recorder, Token } from './recorder.ts'
import { PROCESSES, type RouteName } from './terms.ts'

const TICK_MS = 5
/** Who comes by tides: long enough for leases to be had again after a refusal. */
const TIDE_MS = 6_500

/** Who comes how often. */
export interface Caller {
  readonly subject: string
  readonly route: RouteName
  readonly perSecond: number
  /** So many at once. Default 1. */
  readonly burst?: number
  /** Always the same process. Default: any. */
  readonly process?: number
  /** Only between these milliseconds of every {@link TIDE_MS}. Default: always. */
  readonly during?: readonly [fromMs: number, untilMs: number]
}

/** The tokens that callers use now. */
export interface Wallet {
  tokenOf(subject: string): Token | undefined
  /** Gives a caller another token. Returns the one of before. */
  renew(subject: string): Promise<Token | undefined>
}

export async function createWallet(
  recorder: Pick<Recorder, 'mint'>,
  subjects: readonly string[],
): Promise<Wallet> {
  const tokens = new Map<string, Token>()
  for (const subject of subjects) tokens.set(subject, await recorder.mint(subject))
  return {
    tokenOf: (subject) => tokens.get(subject),
    async renew(subject) {
      const next = await recorder.mint(subject)
      const before = tokens.get(subject)
      tokens.set(subject, next)
      return before
    },
  }
}

/** Most of the limit at once, at an average of somewhat more than it. */
const BURST = { burst: 70, perSecond: 55 }

/** Limits are 100 per 2 s: those with 50 a second and more are refused. */
export const CALLERS: readonly Caller[] = [
  { subject: 'hot-leased', route: 'leased', perSecond: 60 },
  { subject: 'warm-leased', route: 'leased', perSecond: 35 },
  { subject: 'settled-leased', route: 'leased', perSecond: 25, process: 0 },
  { subject: 'burst-leased', route: 'leased', ...BURST },
  // One isolate holds units when everybody else asks for all that is left.
  { subject: 'tide-leased', route: 'leased', perSecond: 35, process: 0, during: [0, 3_800] },
  { subject: 'tide-leased', route: 'leased', perSecond: 400, during: [3_500, 3_900] },
  { subject: 'hot-strict', route: 'strict', perSecond: 55 },
  { subject: 'burst-strict', route: 'strict', ...BURST, perSecond: 40 },
  { subject: 'hot-both', route: 'both', perSecond: 25 },
  ...Array.from({ length: 20 }, (_, index) => ({
    ...({ subject: `cold-${index}`, route: 'leased', perSecond: 0.5 } as const),
  })),
]

/** Sends until `signal` is aborted, but not to who is busy; each caller has a sequence of its own that the seed repeats. */
export async function offerLoad(
  recorder: Pick<Recorder, 'request' | 'isBusy'>,
  wallet: Wallet,
  { callers, seed, signal }: { callers: readonly Caller[]; seed: number; signal: AbortSignal },
): Promise<void> {
  const startMs = performance.now()
  const clocks = callers.map((caller, index) => {
    const random = seededRandom(seed + index)
    return { caller, random, dueMs: startMs + gapOf(caller, random) }
  })
  while (!signal.aborted) {
    await sleep(TICK_MS)
    const nowMs = performance.now()
    for (const clock of clocks) {
      const { caller, random } = clock
      while (clock.dueMs <= nowMs) {
        const isOn = isWithin(caller, clock.dueMs - startMs)
        clock.dueMs += gapOf(caller, random)
        if (!isOn) continue
        const token = wallet.tokenOf(caller.subject)
        for (let n = 0; n < (caller.burst ?? 1); n++) {
          const process = caller.process ?? Math.floor(random() * PROCESSES)
          if (token !== undefined && !recorder.isBusy(process))
            void recorder.request(process, caller.route, token)
        }
      }
    }
  }
}

const isWithin = ({ during: [fromMs, untilMs] = [0, TIDE_MS] }: Caller, atMs: number): boolean =>
  atMs % TIDE_MS >= fromMs && atMs % TIDE_MS < untilMs

/** Milliseconds to the next: as if they came independently of each other. */
const gapOf = ({ perSecond, burst = 1 }: Caller, random: () => number): number =>
  (-Math.log(1 - random()) * burst * 1_000) / perSecond
