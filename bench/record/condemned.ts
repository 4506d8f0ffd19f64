/** Tokens that are revoked while every process receives requests with them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { seededRandom } from '../../dev/fault-proxy/random.ts'
import { CALLERS, startLives, type Wallet } from './load.ts'
import type { Recorder, Token } from './recorder.ts'
import { BOUND_MS, PROCESSES, type RouteName } from './terms.ts'

/** One token in this many belongs to a caller who continues with another token. */
const OF_CALLERS = 4
/** The route of the other tokens. It has no limits, so the cached state of the caller decides. */
const ROUTE: RouteName = 'free'
/** Callers with so many requests that isolates lease units for them or refuse them. */
const HOT = CALLERS.filter(({ perSecond }) => perSecond > 1)
/** Maximum time of use of a token before its revocation. */
const BEFORE_MS = 400
/** Time between two requests with the token. */
const [GAP_MS, GAP_JITTER_MS] = [80, 120]
/** Time of use after the staleness bound. */
const AFTER_MS = 300
/** How long an operator tries other processes. */
const PATIENCE_MS = 4_000
const RETRY_MS = 50

export interface CondemnedOptions {
  readonly perSecond: number
  readonly seed: number
  readonly signal: AbortSignal
}

/** Revokes tokens until `signal` is aborted, and observes each for some time after that. */
export async function condemn(
  recorder: Recorder,
  wallet: Wallet,
  { perSecond, seed, signal }: CondemnedOptions,
): Promise<void> {
  const random = seededRandom(seed)
  const anyProcess = () => Math.floor(random() * PROCESSES)
  const processes = Array.from({ length: PROCESSES }, (_, index) => index)

  async function choose(number: number) {
    const caller = HOT[Math.floor(random() * HOT.length)]
    if (number % OF_CALLERS === 0 && caller !== undefined) {
      const token = await wallet.renew(caller.subject)
      if (token !== undefined) return { token, route: caller.route, kind: 'token' } as const
    }
    const kind = random() < 1 / 2 ? 'token' : 'subject'
    return {
      token: await recorder.mint(`condemned-${seed}-${number}`),
      route: ROUTE,
      kind,
    } as const
  }

  /** Returns the time of the revocation; undefined if no process could revoke it. */
  async function revoke(token: Token, kind: 'token' | 'subject'): Promise<number | undefined> {
    const untilMs = performance.now() + PATIENCE_MS
    while (performance.now() < untilMs) {
      if (await recorder.revoke(anyProcess(), token, kind)) return performance.now()
      await sleep(RETRY_MS)
    }
    return undefined
  }

  async function watch(number: number): Promise<void> {
    const { token, route, kind } = await choose(number)
    const sendToAll = () => processes.map((process) => recorder.request(process, route, token))
    // The first requests cache the token as valid.
    await Promise.all(sendToAll())
    let [returnedMs, isOver]: [number | undefined, boolean] = [undefined, false]
    const ending = sleep(random() * BEFORE_MS).then(async () => {
      returnedMs = await revoke(token, kind)
      if (returnedMs !== undefined) {
        const boundMs = returnedMs + BOUND_MS
        // Just before the end of the bound, and just after it.
        await sleep(Math.max(0, boundMs - 30 * random() - performance.now()))
        void sendToAll()
        while (performance.now() < boundMs) await sleep(1)
        void sendToAll()
        await sleep(AFTER_MS)
      }
      isOver = true
    })
    while (!isOver) {
      const process = anyProcess()
      if (!recorder.isBusy(process)) void recorder.request(process, route, token)
      await sleep(GAP_MS + random() * GAP_JITTER_MS)
    }
    await ending
    await Promise.all(sendToAll())
  }

  await startLives(watch, { perSecond, random, signal })
}
