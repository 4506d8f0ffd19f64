/** Finds out why a gateway has no keys of its issuers, by fetching them in the same way. */

import {
  MAX_METADATA_BYTES,
  MetadataRefused,
  metadataUriIn,
  metadataUrlsOf,
} from '../../src/access/tokens/discovery.ts'
import { type IgnoredKey, importKeys, type KeyRing } from '../../src/access/tokens/key-ring.ts'
import {
  DEFAULT_KEY_SET_TIMEOUT_MS,
  MAX_KEY_SET_BYTES,
} from '../../src/access/tokens/key-set-source.ts'
import { BodyRefused, boundedText } from '../../src/http/bounded-text.ts'
import { callOf } from '../../src/validators/introspection.ts'
import type { IssuerConfig } from '../../src/validators/issuer.ts'
import { unreachable } from './unreachable.ts'

/**
 * Returns one line for each key set that the gateway waits for and that cannot be fetched from this
 * machine: the issuer, the URL and the reason. Empty if all can be fetched. Reports only the status of a
 * response, and no query of a URL, which may be secret.
 */
export async function keySetComplaints(
  issuers: readonly IssuerConfig[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const complaints = await Promise.all(
    issuers.map(async (config) => {
      if (config.jwks !== undefined || config.keySet === 'none') return []
      // Issuers that verify tokens themselves need no keys.
      if (callOf(config) !== undefined) return []
      const { mistake } = await inspectKeySet(config, signal)
      return mistake === undefined ? [] : [`ISSUERS: ${config.issuer}: ${mistake}`]
    }),
  )
  return complaints.flat()
}

/** The result of a download of an issuer's key set. */
export type KeySetReport =
  /** `mistake` names the URL and the reason. Other text of the server is not repeated. */
  | { readonly mistake: string; readonly metadata?: Metadata | undefined }
  | {
      readonly mistake?: never
      /** Undefined if the configuration names the URL of the key set. */
      readonly metadata?: Metadata | undefined
      /** Without the query, which may be secret. */
      readonly location: string
      /** Algorithms of its usable keys. */
      readonly algorithms: readonly string[]
      readonly ignored: readonly IgnoredKey[]
      readonly ring: KeyRing
      /** The key set as it was downloaded. */
      readonly text: string
    }

/** The metadata that an issuer publishes. Its `issuer` may be another one. */
export type Metadata = Readonly<Record<string, unknown>>

/** Fetches the key set of an issuer, which must not be in its configuration, as the gateway does. */
export async function inspectKeySet(
  config: IssuerConfig,
  signal: AbortSignal,
): Promise<KeySetReport> {
  const { issuer, jwksUri, algorithms } = config
  if (jwksUri !== undefined) return keySetAt('jwksUri', jwksUri, algorithms, signal)
  const mistakes: string[] = []
  let metadata: Metadata | undefined
  for (const url of metadataUrlsOf(issuer)) {
    const { text, why } = await fetchText(url, MAX_METADATA_BYTES, signal)
    if (text === undefined) {
      mistakes.push(`metadata ${url} ${why}`)
      continue
    }
    metadata ??= objectIn(text)
    try {
      const uri = metadataUriIn(text, issuer)
      const report = await keySetAt('jwks_uri', uri, algorithms, signal)
      return { ...report, metadata: objectIn(text) }
    } catch (error) {
      const why = error instanceof MetadataRefused ? error.message : 'is not valid JSON'
      mistakes.push(`metadata ${url} ${why}`)
    }
  }
  return { mistake: mistakes.join('; '), metadata }
}

function objectIn(text: string): Metadata | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Metadata) : undefined
  } catch {
    return undefined
  }
}

async function keySetAt(
  member: string,
  uri: string,
  algorithms: IssuerConfig['algorithms'],
  signal: AbortSignal,
): Promise<KeySetReport> {
  const { origin, pathname } = new URL(uri)
  const location = origin + pathname
  const { text, why } = await fetchText(uri, MAX_KEY_SET_BYTES, signal)
  if (text === undefined) return { mistake: `${member} ${location} ${why}` }
  const found = await keysIn(text, algorithms)
  if (typeof found === 'string') return { mistake: `${member} ${location} ${found}` }
  const names = new Set([...found.ring].map(({ algorithm }) => algorithm))
  return { location, algorithms: [...names].sort(), text, ...found }
}

type Fetched = { readonly text: string; readonly why?: never } | { text?: never; why: string }

async function fetchText(uri: string, maxBytes: number, signal: AbortSignal): Promise<Fetched> {
  const timeout = AbortSignal.timeout(DEFAULT_KEY_SET_TIMEOUT_MS)
  try {
    const response = await fetch(uri, {
      headers: { accept: 'application/jwk-set+json, application/json' },
      redirect: 'manual',
      signal: AbortSignal.any([timeout, signal]),
    })
    if (response.status !== 200) {
      await response.body?.cancel()
      return { why: `responds with status ${response.status}${hintFor(response.status)}` }
    }
    return { text: await boundedText(response.body, maxBytes) }
  } catch (error) {
    if (timeout.aborted) return { why: `does not respond within ${DEFAULT_KEY_SET_TIMEOUT_MS} ms` }
    if (!(error instanceof BodyRefused)) return { why: unreachable(error as Error) }
    return {
      why:
        error.check === 'length'
          ? `responds with more than ${maxBytes} bytes`
          : 'responds with text that is not UTF-8',
    }
  }
}

const hintFor = (status: number): string =>
  status >= 300 && status < 400 ? '; redirects are not followed' : ''

/** Returns the keys, or why there are none. */
async function keysIn(
  text: string,
  algorithms: IssuerConfig['algorithms'],
): Promise<NonNullable<Awaited<ReturnType<typeof importKeys>>> | string> {
  let set: unknown
  try {
    set = JSON.parse(text)
  } catch {
    return 'responds with text that is not JSON'
  }
  const asymmetric = algorithms.filter((algorithm) => algorithm !== 'HS256')
  const imported = await importKeys(set, asymmetric)
  if (imported === undefined) return 'responds with JSON that is not a JWK Set'
  return imported.ring.size > 0
    ? imported
    : `has no key that can be used for ${asymmetric.join(', ')}`
}
