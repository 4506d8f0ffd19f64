/** Sends requests to the gateways and records the outcomes. */
import type { Answer, Client } from '../chaos/client.ts'
import type { Explanations } from './explanations.ts'
import type { Ledger, Verdict } from './ledger.ts'
import { NUMBER_HEADER } from './protocol.ts'
import type { Series } from './series.ts'
import type { Shot } from './shots.ts'

export interface SenderOptions {
  readonly client: Client
  readonly ledger: Ledger
  readonly explanations: Explanations
  readonly series: Series
  /** URLs of the gateways. */
  readonly gateways: readonly string[]
  random(): number
}

export interface Sender {
  /**
   * Sends to a random gateway, or to the given one. `dueMs` is the planned time. The measured time
   * starts there, so that it includes delays of the load.
   */
  send(shot: Shot, at?: { readonly gateway?: number; readonly dueMs?: number }): Promise<Outcome>
}

export type Outcome = Answer & { readonly verdict: Verdict }

export function createSender(options: SenderOptions): Sender {
  const { client, ledger, explanations, series, gateways, random } = options
  return {
    async send({ expectation, outgoing }, at = {}) {
      const { gateway = Math.floor(random() * gateways.length), dueMs = Date.now() } = at
      const { path, method, headers, body } = outgoing
      const sentMs = Date.now()
      const number = ledger.open({ expectation, method, gateway, sentMs })
      const answer = await client.send({
        url: gateways[gateway] + path,
        method,
        headers: { ...headers, [NUMBER_HEADER]: String(number) },
        body,
      })
      const nowMs = Date.now()
      const verdict = ledger.settle(number, answer, nowMs)
      series.record({
        nowMs,
        latencyMs: nowMs - dueMs,
        status: answer.status,
        isTroubled: explanations.isTroubled({ fromMs: sentMs, toMs: nowMs, gateway }),
        verdict,
      })
      return { ...answer, verdict }
    },
  }
}
