/** All compared gateways, in one environment: one origin, one Redis, one issuer, the same tokens. */
import { createPublicKey, type JsonWebKey } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Shutdown } from '../../dev/start/shutdown.ts'
import type { Backends } from '../stack/backends.ts'
import { type BenchTokens, PUBLIC_URL } from '../stack/credentials.ts'
import { envoy } from './envoy/start.ts'
import { fastify } from './fastify/start.ts'
import { handwritten, handwrittenAtOnce } from './handwritten/start.ts'
import { haproxy } from './haproxy/start.ts'
import { nginx } from './nginx/start.ts'
import { ours, passthrough } from './ours.ts'
import type { Grounds, Peer, Running } from './peer.ts'

/** All gateways in the order of the tables. A quick run does not install those that it leaves out. */
export const PEERS: readonly Peer[] = [
  ours,
  handwritten,
  handwrittenAtOnce,
  passthrough,
  haproxy,
  envoy,
  fastify,
  nginx,
]

/** A limit that is never reached, so that no request is refused during a measurement. */
const ROOMY_LIMIT = 1_000_000_000

export interface Entrant {
  readonly peer: Peer
  readonly running: Running
}

export interface Entry {
  readonly peers: readonly Peer[]
  readonly backends: Backends
  readonly tokens: BenchTokens
  /** Limit per subject in 60 s. Default: a limit that is never reached. */
  readonly limit?: number
  readonly directory: string
  readonly shutdown: Pick<Shutdown, 'signal' | 'defer'>
  readonly onProgress: (what: string) => void
}

/** Starts all gateways. `skipped` names optional ones that did not start, one line each. */
export async function startAll(entry: Entry): Promise<{
  readonly entrants: readonly Entrant[]
  readonly skipped: readonly string[]
}> {
  const { peers, backends, tokens, limit = ROOMY_LIMIT, directory, shutdown, onProgress } = entry
  const entrants: Entrant[] = []
  const skipped: string[] = []
  for (const peer of peers) {
    onProgress(`starting ${peer.title}`)
    const own = join(directory, peer.id)
    mkdirSync(own, { recursive: true })
    try {
      const running = await peer.start({
        backends,
        ...issuerOf(tokens),
        limit,
        directory: own,
        bundles: directory,
        signal: shutdown.signal,
      })
      shutdown.defer(running.close)
      entrants.push({ peer, running })
    } catch (error) {
      shutdown.signal.throwIfAborted()
      if (!peer.optional) throw error
      skipped.push(`${peer.title} was skipped: ${(error as Error).message}`)
    }
    shutdown.signal.throwIfAborted()
  }
  return { entrants, skipped }
}

/** Returns the public key of the tokens' issuer, in the formats that the gateways read. */
export function issuerOf({
  signingKeys,
}: Pick<BenchTokens, 'signingKeys'>): Pick<
  Grounds,
  'signingKeys' | 'jwks' | 'publicKey' | 'issuer'
> {
  const { keys } = JSON.parse(signingKeys) as { keys: (JsonWebKey & Record<string, unknown>)[] }
  const [key] = keys
  if (key === undefined) throw new Error('missing signing key')
  const { kty, crv, x, y, kid, alg } = key
  const jwks = JSON.stringify({ keys: [{ kty, crv, x, y, kid, alg, use: 'sig' }] })
  const publicKey = createPublicKey({ key, format: 'jwk' }).export({ type: 'spki', format: 'pem' })
  return { signingKeys, jwks, publicKey: String(publicKey), issuer: PUBLIC_URL }
}
