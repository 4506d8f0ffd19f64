/** Sessions whose refresh tokens are used, sent twice, replayed and revoked, each time at any process. */
import { setTimeout as sleep } from 'node:timers/promises'
import { decodeJwt } from 'jose'
import { seededRandom } from '../../dev/fault-proxy/random.ts'
import type { RefreshEvent } from '../chaos/history.ts'
import { ACCESS_TOKEN, EXCHANGE } from '../stack/credentials.ts'
import type { CondemnedOptions } from './condemned.ts'
import { startLives } from './load.ts'
import type { Recorder, Token } from './recorder.ts'
import { BOUND_MS, EVERYBODY, PROCESSES } from './terms.ts'

/** Most uses of a session, and the time between two. */
const [USES, GAP_MS] = [8, 250]
/** One use in this many is sent to two processes at once. */
const OF_TWICE = 3
/** How long a client tries other processes. */
const PATIENCE_MS = 7_000
const RETRY_MS = 60

/** Opens sessions until `signal` is aborted, and observes each until after its end. */
export async function refresh(
  recorder: Recorder,
  { perSecond, seed, signal }: CondemnedOptions,
): Promise<void> {
  const random = seededRandom(seed)
  const anyProcess = () => Math.floor(random() * PROCESSES)

  async function live(family: string): Promise<void> {
    const access: Token[] = []
    const refreshTokens: string[] = []
    /** Sends a form. Returns its status, and the successor if it is a new one. */
    async function send(purpose: RefreshEvent['purpose'], token: string, process = anyProcess()) {
      const { jwt } = await recorder.mint(family)
      const fields =
        purpose === 'open'
          ? { grant_type: EXCHANGE, subject_token: jwt, subject_token_type: ACCESS_TOKEN }
          : { grant_type: 'refresh_token', refresh_token: token, token }
      const sent = await recorder.refresh(process, { family, purpose, token }, fields)
      if (sent.access !== undefined) {
        const id = String(decodeJwt(sent.access).jti)
        access.push({ id, subject: family, jwt: sent.access })
      }
      const { status, event, successor } = sent
      if (successor !== undefined && !refreshTokens.includes(successor))
        refreshTokens.push(successor)
      // It may have ended the family, or have done so when the response is lost.
      const isEnd = status === (purpose === 'end' ? 200 : 400)
      const mayEnd = isEnd || purpose === 'replay' || purpose === 'end' || status !== 200
      if (mayEnd && purpose !== 'open')
        for (const { id } of access)
          recorder.revoked(event, id, isEnd && purpose !== 'use' ? 201 : 0)
      return { status, isEnd }
    }
    /** Sends until a response says what became of it. Returns whether it has ended the family; undefined: no response. */
    async function insist(purpose: RefreshEvent['purpose'], token: string) {
      const untilMs = performance.now() + PATIENCE_MS
      while (performance.now() < untilMs) {
        const times = purpose === 'use' && random() * OF_TWICE < 1 ? 2 : 1
        const sent = await Promise.all(Array.from({ length: times }, () => send(purpose, token)))
        if (sent.some(({ isEnd }) => isEnd)) return true
        if (sent.some(({ status }) => status === 200)) return false
        await sleep(RETRY_MS)
      }
      return undefined
    }
    const call = (process: number) => {
      const token = access[Math.floor(random() * access.length)]
      return token && recorder.request(process, 'free', token)
    }

    if ((await insist('open', '')) !== false) return
    let hasEnded: boolean | undefined = false
    for (let left = 1 + random() * USES; left > 0 && hasEnded === false; left--) {
      void call(anyProcess())
      await sleep(random() * GAP_MS)
      hasEnded = await insist('use', refreshTokens.at(-1) ?? '')
    }
    const [old, last = ''] = [refreshTokens.at(-3), refreshTokens.at(-1)]
    if (hasEnded === false)
      hasEnded = await (old !== undefined && random() < 1 / 2
        ? insist('replay', old)
        : insist('end', last))
    if (!hasEnded) return
    for (const pauseMs of [0, BOUND_MS, 0]) {
      await sleep(pauseMs)
      await Promise.all(EVERYBODY.flatMap((process) => [call(process), send('use', last, process)]))
    }
  }

  const living = (number: number) => live(`family-${seed}-${number}`)
  await startLives(living, { perSecond, random, signal })
}
