/** Requests with their expected outcomes, and a sender that records the actual ones. */

import { NUMBER_HEADER } from '../chaos/dependencies.ts'
import type { Expectation, Explanations, Ledger, Verdict } from '../chaos/ledger.ts'
import type { Answer, Client, Outgoing } from '../load/client.ts'
import type { Series } from './series.ts'
import type { createSlowest } from './slowest.ts'

export interface Shot {
  readonly expectation: Expectation
  readonly outgoing: Omit<Outgoing, 'url'> & { readonly path: string }
}

export interface Requester {
  readonly credential?: string
  readonly address: string
}

const JSON_TYPE = { 'content-type': 'application/json' }

/** Creates a request that must be admitted as `subject` (empty: anonymous), with this status. */
export function goodShot(
  kind: string,
  { credential, address }: Requester,
  request: { method?: string; path: string; body?: object; subject: string; right?: number[] },
): Shot {
  const { method = 'GET', path, body, subject, right = [200] } = request
  return {
    expectation: { kind, right, mayReachOrigin: 'yes', subject },
    outgoing: { method, path, ...contentOf(credential, address, body) },
  }
}

/** Creates a request that must be refused and must not reach the origin. */
export function badShot(
  kind: string,
  right: readonly number[],
  { credential, address }: Requester,
  request: { method?: string; path?: string; body?: object | string; type?: string } = {},
): Shot {
  const { method = 'GET', path = '/orders', body, type } = request
  const content = contentOf(credential, address, body)
  return {
    expectation: { kind, right, mayReachOrigin: 'no', subject: '' },
    outgoing: {
      method,
      path,
      ...content,
      headers: { ...content.headers, ...(type !== undefined && { 'content-type': type }) },
    },
  }
}

function contentOf(credential: string | undefined, address: string, body?: object | string) {
  return {
    headers: {
      accept: 'application/json',
      // Cloudflare's header, and the one of a trusted proxy.
      'cf-connecting-ip': address,
      'x-forwarded-for': address,
      ...(credential !== undefined && { authorization: `Bearer ${credential}` }),
      ...(body !== undefined && JSON_TYPE),
    },
    body: typeof body === 'object' ? JSON.stringify(body) : body,
  }
}

export interface SenderOptions {
  readonly client: Client
  readonly ledger: Ledger
  readonly explanations: Explanations
  readonly series: Series
  readonly slowest: Pick<ReturnType<typeof createSlowest>, 'record'>
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
  const { client, ledger, explanations, series, slowest, gateways, random } = options
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
      const { status, requestId } = answer
      const isTroubled = explanations.isTroubled({ fromMs: sentMs, toMs: nowMs, gateway })
      series.record({ nowMs, latencyMs: nowMs - dueMs, status, isTroubled, verdict })
      if (!isTroubled && status !== 0)
        slowest.record({ requestId, gateway, dueMs, sentMs, answeredMs: nowMs })
      return { ...answer, verdict }
    },
  }
}
