/** An identity provider on a loopback port. A test can change its behavior at any time. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  createRemoteKeySet,
  type RemoteKeySetOptions,
} from '../../../src/access/tokens/remote-key-set.ts'
import type { Algorithm } from '../../../src/validators/jwk.ts'
import { startHttpServer } from '../../harness/http-server.ts'
import { NOW_MS, outcome } from './signer.ts'

export type Behavior = (response: ServerResponse, request: IncomingMessage) => unknown

export const publishing =
  (keys: readonly object[], headers: Record<string, string> = {}): Behavior =>
  (response) =>
    response
      .writeHead(200, { 'content-type': 'application/json', ...headers })
      .end(JSON.stringify({ keys }))

export const respondingWith =
  (text: string | Uint8Array, status = 200, headers: Record<string, string> = {}): Behavior =>
  (response) =>
    response.writeHead(status, headers).end(text)

/** Accepts the request and never responds. */
export const hanging: Behavior = () => {}

export const refusing = respondingWith('<h1>Bad gateway</h1>', 502)

export async function startProvider(behavior: Behavior) {
  const provider = { behavior, hits: 0 }
  const server = await startHttpServer((request, response) => {
    provider.hits++
    provider.behavior(response, request)
  })
  return Object.assign(provider, { url: `${server.url}/jwks`, close: () => server.close() })
}

/** A key set on a test clock, without randomness. */
export function keySetOn(url: string, options: Partial<RemoteKeySetOptions> = {}) {
  const clock = { nowMs: NOW_MS }
  const background: Promise<unknown>[] = []
  const algorithms: readonly Algorithm[] = ['ES256', 'RS256']
  const keySet = createRemoteKeySet({
    uri: url,
    algorithms,
    now: () => clock.nowMs,
    random: () => 0,
    report: () => {},
    ...options,
  })
  const find = ({ kid, alg }: { readonly kid: string | undefined; readonly alg: string }) =>
    outcome(() => keySet.find({ kid, alg }, (promise) => background.push(promise)))
  return {
    keySet,
    nowMs: () => clock.nowMs,
    find,
    /** Resolves when all background work has ended. */
    settled: () => Promise.all(background),
    advance(seconds: number) {
      clock.nowMs += seconds * 1000
    },
  }
}
