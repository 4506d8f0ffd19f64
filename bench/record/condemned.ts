/** Tokens that are revoked while every process is asked about them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { seededRandom } from '../../dev/fault-proxy/random.ts'
import { CALLERS, type Wallet } from './load.ts'
import type { Recorder, Token } from './recorder.ts'
import { BOUND_MS, PROCESSES, type RouteName } from './terms.ts'

/** One in so many is the token of a caller who goes on with another one. */
const OF_CALLERS = 4
/** What the others ask for: without limits a request is decided by what is known of its caller. */
const ROUTE: RouteName = 'free'
/** Who comes so often that isolates take units ahead, or are refused. */
const HOT = CALLERS.filter(({ perSecond }) => perSecond > 1)
/** A token is used for up to so long before it is revoked. */
const BEFORE_MS = 400
/** From one request with it to the next. */
const [GAP_MS, GAP_JITTER_MS] = [80, 120]
/** It is asked about so much longer than the bound. */
const AFTER_MS = 300
/** An operator tries other processes for so long. */
const PATIENCE_MS = 4_000
const RETRY_MS = 50

export interface CondemnedOptions {
  readonly perSecond: number
  readonly seed: number
  readonly signal: AbortSignal
}

/** Revokes so many a second until `signal` is aborted, and resolves when the last has been watched. */
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

  /** Returns when it has been done; undefined: nobody could. */
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
    const askAll = () => processes.map((process) => recorder.request(process, route, token))
    // By the first they learn that it is good.
    await Promise.all(askAll())
    let [returnedMs, isOver]: [number | undefined, boolean] = [undefined, false]
    const ending = sleep(random() * BEFORE_MS).then(async () => {
      returnedMs = await revoke(token, kind)
      if (returnedMs !== undefined) {
        const boundMs = returnedMs + BOUND_MS
        // Just before the end of the bound, and just behind it.
        await sleep(Math.max(0, boundMs - 30 * random() - performance.now()))
        void askAll()
        while (performance.now() < boundMs) await sleep(1)
        void askAll()
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
    await Promise.all(askAll())
  }

  const watched = new Set<Promise<void>>()
  for (let number = 0; !signal.aborted; number++) {
    const watching = watch(number)
    watched.add(watching)
    void watching.finally(() => watched.delete(watching))
    await sleep((-Math.log(1 - random()) * 1_000) / perSecond)
  }
  await Promise.all(watched)
}
