/** Sends requests to routes with limits by a plan and a seed, whatever their outcome. */
import { setTimeout as sleep } from 'node:timers/promises'
import { seededRandom } from '../../dev/fault-proxy/random.ts'
import type { Recorder, Token } from './recorder.ts'
import { PROCESSES, type RouteName } from './terms.ts'

const TICK_MS = 5
/** Period of callers with periodic load: long enough for new leases after a refusal. */
const TIDE_MS = 6_500

export interface Caller {
  readonly subject: string
  readonly route: RouteName
  readonly perSecond: number
  /** Requests per burst. Default 1. */
  readonly burst?: number
  /** Always use this process. Default: any. */
  readonly process?: number
  /** Send only between these milliseconds of every {@link TIDE_MS}. Default: always. */
  readonly during?: readonly [fromMs: number, untilMs: number]
}

export interface Wallet {
  tokenOf(subject: string): Token | undefined
  /** Gives a caller a new token. Returns the previous one. */
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

/** Most of the limit at once, and on average slightly more than the limit. */
const BURST = { burst: 70, perSecond: 55 }

/** Limits are 100 per 2 s: callers with 50 per second or more are refused. */
export const CALLERS: readonly Caller[] = [
  { subject: 'hot-leased', route: 'leased', perSecond: 60 },
  { subject: 'warm-leased', route: 'leased', perSecond: 35 },
  { subject: 'settled-leased', route: 'leased', perSecond: 25, process: 0 },
  { subject: 'burst-leased', route: 'leased', ...BURST },
  // One isolate has leased units when all others request the rest.
  { subject: 'tide-leased', route: 'leased', perSecond: 35, process: 0, during: [0, 3_800] },
  { subject: 'tide-leased', route: 'leased', perSecond: 400, during: [3_500, 3_900] },
  { subject: 'hot-strict', route: 'strict', perSecond: 55 },
  { subject: 'burst-strict', route: 'strict', ...BURST, perSecond: 40 },
  { subject: 'hot-both', route: 'both', perSecond: 25 },
  ...Array.from({ length: 20 }, (_, index) => ({
    ...({ subject: `cold-${index}`, route: 'leased', perSecond: 0.5 } as const),
  })),
]

/** Sends requests until `signal` is aborted, except to busy processes. */
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

/** Returns the milliseconds to the next request, as for independent arrivals. */
const gapOf = ({ perSecond, burst = 1 }: Caller, random: () => number): number =>
  (-Math.log(1 - random()) * burst * 1_000) / perSecond

/** Starts `perSecond` lives at random times until `signal` is aborted. Resolves when all have ended. */
export async function startLives(
  live: (number: number) => Promise<void>,
  { perSecond, random, signal }: { perSecond: number; random: () => number; signal: AbortSignal },
): Promise<void> {
  const living = new Set<Promise<void>>()
  for (let number = 0; !signal.aborted; number++) {
    const life = live(number)
    living.add(life)
    void life.finally(() => living.delete(life))
    await sleep((-Math.log(1 - random()) * 1_000) / perSecond)
  }
  await Promise.all(living)
}
