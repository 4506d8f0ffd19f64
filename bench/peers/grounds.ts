/** Shared environment of all gateways: one origin, one Redis, one issuer, the same tokens. */
import { createPublicKey, type JsonWebKey } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Shutdown } from '../../dev/start/shutdown.ts'
import type { Backends } from '../backends.ts'
import { type BenchTokens, PUBLIC_URL } from '../tokens.ts'
import type { Contestant, Grounds, Running } from './contestant.ts'

/** A limit that is never reached, so that no request is refused during a measurement. */
const ROOMY_LIMIT = 1_000_000_000

/** A running gateway. */
export interface Entrant {
  readonly contestant: Contestant
  readonly running: Running
}

export interface Entry {
  readonly cast: readonly Contestant[]
  readonly backends: Backends
  readonly tokens: BenchTokens
  /** Limit per subject in 60 s. Default: a limit that is never reached. */
  readonly limit?: number
  /** Temporary directory. */
  readonly directory: string
  readonly shutdown: Pick<Shutdown, 'signal' | 'defer'>
  readonly onProgress: (what: string) => void
}

/**
 * Starts all gateways. `skipped` names optional gateways that did not start, one line each. Throws
 * if another one does not start.
 */
export async function startAll(entry: Entry): Promise<{
  readonly entrants: readonly Entrant[]
  readonly skipped: readonly string[]
}> {
  const { cast, backends, tokens, limit = ROOMY_LIMIT, directory, shutdown, onProgress } = entry
  const entrants: Entrant[] = []
  const skipped: string[] = []
  for (const contestant of cast) {
    onProgress(`starting ${contestant.title}`)
    const own = join(directory, contestant.id)
    mkdirSync(own, { recursive: true })
    try {
      const running = await contestant.start({
        backends,
        ...issuerOf(tokens),
        limit,
        directory: own,
        bundles: directory,
        signal: shutdown.signal,
      })
      shutdown.defer(running.close)
      entrants.push({ contestant, running })
    } catch (error) {
      shutdown.signal.throwIfAborted()
      if (!contestant.optional) throw error
      skipped.push(`${contestant.title} is left out: ${(error as Error).message}`)
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
  if (key === undefined) throw new Error('there is no key')
  const { kty, crv, x, y, kid, alg } = key
  const jwks = JSON.stringify({ keys: [{ kty, crv, x, y, kid, alg, use: 'sig' }] })
  const publicKey = createPublicKey({ key, format: 'jwk' }).export({ type: 'spki', format: 'pem' })
  return { signingKeys, jwks, publicKey: String(publicKey), issuer: PUBLIC_URL }
}
