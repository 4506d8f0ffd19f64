/** The gateway's own signing keys: parsing, selection, publication and import. */
import type { CryptoKey } from 'jose'
import { Misconfigured, Unavailable } from '../../errors.ts'
import type { Dependency } from '../../problems/reasons.ts'
import { inEnglish } from '../../validators/english.ts'
import {
  publicJwk,
  type SigningAlgorithm,
  type SigningJwk,
  signingKeys,
} from '../../validators/signing-jwk.ts'
import { importKey } from './import-key.ts'

export type { SigningAlgorithm, SigningJwk }

/** An imported private key. It cannot be exported. */
export interface SigningKey {
  readonly kid: string
  readonly alg: SigningAlgorithm
  readonly privateKey: CryptoKey
}

/** Parses a private JWK Set. Throws `Misconfigured`, which contains no member of a key. */
export function parseSigningKeys(jwks: unknown): SigningJwk[] {
  const parsed = signingKeys.safeParse(jwks, inEnglish())
  if (parsed.success) return parsed.data.keys
  throw new Misconfigured(
    'The signing keys',
    parsed.error.issues.map(({ path, message }) => ({
      code: 'invalid_value',
      path: path.map((part) => (typeof part === 'number' ? part : String(part))),
      message,
    })),
  )
}

/**
 * Returns the key that signs at `nowMs`: the first one after its `nbf` and before its `exp`. Every
 * gateway with the same keys selects the same key at the same time. Keys therefore change by the
 * clock, not by a deployment.
 */
export function activeKey(
  keys: readonly SigningJwk[],
  nowMs: number,
  algorithm?: SigningAlgorithm,
): SigningJwk | undefined {
  return keys.find(
    (key) =>
      (key.nbf ?? 0) * 1000 <= nowMs &&
      !isExpired(key, nowMs) &&
      (algorithm === undefined || key.alg === algorithm),
  )
}

/** What a key is for. */
export interface KeyUse {
  readonly algorithm?: SigningAlgorithm | undefined
  /** The variable that has the keys. */
  readonly variable: string
  /** What fails without a key. */
  readonly dependency: Dependency
  /** The issuer at which the gateway is the client of the keys. */
  readonly issuer?: string
}

export const OWN_TOKENS: KeyUse = { variable: 'SIGNING_KEYS', dependency: 'signing_keys' }

const DAY_MS = 86_400_000
/** How long before the last key expires the log says so, once a day. */
const EXPIRES_SOON_MS = 7 * DAY_MS
const REPEAT_OUTAGE_MS = 60_000

/**
 * Imports the {@link activeKey}. Throws `Unavailable` (`no_key`) if there is none, or if it cannot sign:
 * keys expire while a gateway runs. The log then names the variable, at most once a minute, and warns of
 * the end of the last key.
 */
export async function activeSigningKey(
  keys: readonly SigningJwk[],
  nowMs: number,
  use: KeyUse = OWN_TOKENS,
): Promise<SigningKey> {
  const { algorithm, variable, dependency, issuer } = use
  const jwk = activeKey(keys, nowMs, algorithm)
  reportExpiry(keys, nowMs, use)
  let cause: unknown
  try {
    if (jwk !== undefined) return await importSigningKey(jwk, variable)
  } catch (error) {
    cause = error
  }
  const kid = jwk?.kid
  const incident = { incident: 'no_signing_key', variable, issuer, algorithm, kid }
  report(keys, 'error', incident, nowMs)
  throw new Unavailable(dependency, 'no_key', { cause })
}

/** Logs that the last key expires within seven days, once a day. */
export function reportExpiry(
  keys: readonly SigningJwk[],
  nowMs: number,
  { algorithm, variable, issuer }: KeyUse = OWN_TOKENS,
): void {
  const endMs = endOfKeys(keys, algorithm)
  if (endMs - nowMs > EXPIRES_SOON_MS || endMs <= nowMs) return
  const expiresAt = new Date(endMs).toISOString()
  const incident = { incident: 'signing_key_expires', variable, issuer, algorithm, expiresAt }
  report(keys, 'warn', incident, nowMs)
}

/** Returns when the last key expires, in milliseconds since the epoch. */
const endOfKeys = (keys: readonly SigningJwk[], algorithm?: SigningAlgorithm): number =>
  Math.max(
    ...keys
      .filter(({ alg }) => algorithm === undefined || alg === algorithm)
      .map(({ exp = Number.POSITIVE_INFINITY }) => exp * 1000),
  )

/** When a line about a set of keys was last logged, by the first key of the set. */
const reportedMs = new WeakMap<SigningJwk, Map<string, number>>()

function report(
  [first]: readonly SigningJwk[],
  level: 'warn' | 'error',
  incident: object,
  nowMs: number,
): void {
  const line = JSON.stringify(incident)
  const pauseMs = level === 'warn' ? DAY_MS : REPEAT_OUTAGE_MS
  const times = (first && reportedMs.get(first)) ?? new Map<string, number>()
  if (nowMs < (times.get(line) ?? Number.NEGATIVE_INFINITY) + pauseMs) return
  if (first !== undefined) reportedMs.set(first, times.set(line, nowMs))
  console[level](line)
}

/** Returns the keys to publish: all that have not expired, also those that do not sign yet. */
export function publishedKeys(keys: readonly SigningJwk[], nowMs: number): readonly SigningJwk[] {
  return keys.filter((key) => !isExpired(key, nowMs))
}

/** Before it signs, while it signs, while it only verifies, after its expiry. */
export type SigningKeyState = 'next' | 'active' | 'retiring' | 'expired'

/** Returns the state of one of `keys`. For each algorithm, the first valid key is `active`. */
export function signingKeyState(
  key: SigningJwk,
  keys: readonly SigningJwk[],
  nowMs: number,
): SigningKeyState {
  if (isExpired(key, nowMs)) return 'expired'
  if ((key.nbf ?? 0) * 1000 > nowMs) return 'next'
  return activeKey(keys, nowMs, key.alg) === key ? 'active' : 'retiring'
}

function isExpired({ exp }: SigningJwk, nowMs: number): boolean {
  return exp !== undefined && nowMs >= exp * 1000
}

/** Returns the public JWK Set of these keys (RFC 7517 section 5). */
export function publicKeySet(keys: readonly SigningJwk[]) {
  return { keys: keys.map(publicJwk) }
}

const imported = new WeakMap<SigningJwk, SigningKey>()

/**
 * Imports a private key, once for the same object. Throws `Misconfigured` if its signatures do not
 * verify with its public half: the gateway would refuse its own tokens. `variable` is named in the mistake.
 */
export async function importSigningKey(
  jwk: SigningJwk,
  variable = 'SIGNING_KEYS',
): Promise<SigningKey> {
  const key = imported.get(jwk) ?? (await importPair(jwk, variable))
  imported.set(jwk, key)
  return key
}

async function importPair(jwk: SigningJwk, variable: string): Promise<SigningKey> {
  const { kid, alg } = jwk
  const { key_ops: _operations, use: _use, ...members } = jwk
  try {
    const privateKey = await importKey(members, alg)
    const publicKey = await importKey(publicJwk(jwk), alg)
    const parameters = { name: privateKey.algorithm.name, hash: 'SHA-256' }
    const probe = new TextEncoder().encode(kid)
    const signature = await crypto.subtle.sign(parameters, privateKey, probe)
    if (await crypto.subtle.verify(parameters, publicKey, signature, probe)) {
      return { kid, alg, privateKey }
    }
  } catch {
    // The cause is dropped, because the message of an engine may quote the key.
  }
  throw new Misconfigured(variable, [`${kid}: is not a key pair`])
}
