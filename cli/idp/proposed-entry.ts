/** Composes the entry, or the change of an entry, that accepts a token, and proves it. */

import { principalFrom } from '../../src/access/tokens/claims.ts'
import { issuerRules } from '../../src/access/tokens/issuer-rules.ts'
import { createTokenVerifier } from '../../src/access/tokens/verifier.ts'
import { Denied, Unavailable } from '../../src/errors.ts'
import type { IssuerConfig } from '../../src/validators/issuer.ts'
import type { Check, Fields } from './check.ts'
import type { Comparison } from './comparison.ts'
import { parsed } from './configuration.ts'
import type { Keys } from './keys.ts'
import { judgeType, refusalOf } from './rules.ts'
import { tokenChecks } from './token-checks.ts'

export interface Suggestion {
  /** The entry of `ISSUERS` that changes. Absent if the entry is new. */
  readonly index?: number
  /** The complete entry, or only the fields that change. */
  readonly fields: Fields
  /** Absent if there is no token. */
  readonly verdict?: Verdict
  /** The notes that the operator must read before using it. */
  readonly notes: readonly string[]
}

/** The decision of the gateway's verifier about a token. */
export type Verdict = 'accepted' | 'not tried' | `rejected: ${string}`

/** A change can uncover another mistake, but not many. */
const MAX_ROUNDS = 5

/** The result of applying all changes. */
export interface Repaired {
  readonly fields: Fields
  readonly config: IssuerConfig
  readonly conditions: readonly string[]
  /** Checks that still fail. */
  readonly errors: number
}

/** Applies the changes of failed checks until none is left. Drops no field of the entry. */
export async function repair(comparison: Comparison): Promise<Repaired> {
  const conditions = new Set<string>()
  let { fields, config } = comparison
  let checks = await tokenChecks(comparison)
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const changes = checks.filter(({ change }) => change !== undefined)
    const next: Fields = Object.assign({}, fields, ...changes.map(({ change }) => change))
    const changed = parsed([next]).configs.find(({ issuer }) => issuer === config.issuer)
    if (changes.length === 0 || changed === undefined) break
    for (const { condition } of changes) if (condition !== undefined) conditions.add(condition)
    fields = next
    config = changed
    checks = await tokenChecks({ ...comparison, fields, config })
  }
  return { fields, config, conditions: [...conditions], errors: errorsIn(checks) }
}

export const errorsIn = (checks: readonly Check[]): number =>
  checks.filter(({ level }) => level === 'error').length

/** Returns what the verifier of the gateway decides, with the keys that were fetched. */
export async function verdictOf(
  token: string,
  config: IssuerConfig,
  { ring, text }: Keys,
  nowMs: number,
): Promise<Verdict> {
  if (ring === undefined) return 'not tried'
  const stored = text === undefined ? undefined : { text, fetchedAtMs: nowMs }
  const cache = { read: async () => stored, write: async () => undefined }
  const keySets = { cache, report: () => undefined }
  const verifier = createTokenVerifier({ issuers: [config], now: () => nowMs, keySets })
  try {
    await verifier.verify(token)
    return 'accepted'
  } catch (error) {
    if (error instanceof Denied && error.denial.code === 'token_rejected') {
      return `rejected: ${error.denial.check}`
    }
    if (error instanceof Unavailable) return 'rejected: key set'
    throw error
  }
}

/**
 * Returns a warning if the entry would also accept an ID token of the issuer: one for the same
 * audience without the claims that most ID tokens have. Undefined if a rule refuses it.
 */
export async function idTokenWarning({ presented, config, fields }: Comparison) {
  if (config.tokenUse === 'id') {
    return 'This entry accepts ID tokens ("tokenUse": "id"): every client of the provider with this audience can use them at the API.'
  }
  const { header, payload } = presented
  const types = ['JWT', undefined].map((typ) => judgeType(config, { ...header, typ }))
  if ((await Promise.all(types)).every((refused) => refused !== undefined)) return undefined
  const [aud] = [config.audience].flat()
  const { iss, sub, exp, iat, azp } = payload
  // ID tokens of known providers name no client where the preset requires one.
  const client = fields.preset === undefined && azp !== undefined ? { azp } : {}
  const probe = { iss, sub: sub ?? 'user', aud, exp, iat, auth_time: iat, ...client }
  const rules = issuerRules(config)
  const options = { nowMs: Number(iat) * 1000, isOwn: false }
  const refused = await refusalOf(() => principalFrom(probe, rules, options))
  if (refused !== undefined) return undefined
  return 'This entry also accepts an ID token for the same audience as an access token. Add a rule in require that only access tokens of the provider meet.'
}
