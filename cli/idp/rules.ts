/**
 * Judges a token by each rule of an entry alone, with the code of the gateway. The verifier stops at
 * the first mistake; here, all rules but one are open, and each rule has its turn.
 */

import { principalFrom } from '../../src/access/tokens/claims.ts'
import { type IssuerRules, issuerRules, KIND_CLAIMS } from '../../src/access/tokens/issuer-rules.ts'
import { type JwsHeader, verifySignature } from '../../src/access/tokens/jws.ts'
import { type KeyRing, keyFor, keyNotFound } from '../../src/access/tokens/key-ring.ts'
import { Denied } from '../../src/errors.ts'
import type { IssuerConfig } from '../../src/validators/issuer.ts'
import { listRefusedClaims } from '../../src/validators/issuer.ts'
import type { Fields } from './check.ts'

/** A token that is well-formed. Nothing of it was verified. */
export interface Presented {
  readonly token: string
  readonly header: JwsHeader
  readonly payload: Fields
}

/** The claims of a token where an entry says that they are. */
export type ReadClaims = ReturnType<IssuerRules['read']>

/** The year 9999. */
const NEVER_SECONDS = 253_402_300_799

/** Returns the check that refuses, or undefined. */
export async function refusalOf(judge: () => unknown): Promise<string | undefined> {
  try {
    await judge()
    return undefined
  } catch (error) {
    if (error instanceof Denied && error.denial.code === 'token_rejected') return error.denial.check
    throw error
  }
}

export function judgeAlgorithm(config: IssuerConfig, header: JwsHeader) {
  return refusalOf(() => issuerRules(config).checkAlgorithm(header))
}

export function judgeType(config: IssuerConfig, header: JwsHeader) {
  return refusalOf(() => issuerRules(config).checkType(header))
}

export function judgeKey(ring: KeyRing, header: JwsHeader) {
  return refusalOf(() => {
    if (keyFor(ring, header) === undefined) throw keyNotFound(header)
  })
}

export function judgeSignature(ring: KeyRing, { token, header }: Presented) {
  return refusalOf(async () => {
    const key = keyFor(ring, header)
    if (key === undefined) throw keyNotFound(header)
    await verifySignature(token, key)
  })
}

/** A rule for each claim that may state the kind of a token, which every token meets. */
const ANY_KIND = Object.fromEntries(KIND_CLAIMS.map((name) => [name, ['*', null]]))

/** Without rules about clients, kinds of tokens and other claims. */
const withoutRules = (config: IssuerConfig): IssuerConfig => ({
  ...config,
  clients: undefined,
  require: ANY_KIND,
  refuse: [],
})

/** Without those rules, and for any audience of the token. */
function openFor(config: IssuerConfig, payload: Fields): IssuerConfig {
  const audience = [...audiencesIn(claimsOf(config, payload).aud), ...audiencesIn(payload.aud)]
  return { ...withoutRules(config), audience }
}

/** Without those rules, and for the audience "-" in `aud`. */
const openForAny = (config: IssuerConfig): IssuerConfig => ({
  ...withoutRules(config),
  audience: [...[config.audience].flat(), '-'],
  audienceClaim: undefined,
})

/** Returns the kind of token that a claim states, if it is none that gives access to an API. */
export async function kindIn(
  config: IssuerConfig,
  payload: Fields,
  name: string,
): Promise<'id' | 'other' | undefined> {
  const stated = { aud: '-', [name]: payload[name] }
  const judge = (tokenUse?: 'id') =>
    judgeClaims({ ...openForAny(config), require: {}, tokenUse }, stated)
  if ((await judge()) === undefined) return undefined
  return (await judge('id')) === undefined ? 'id' : 'other'
}

/** Returns the claims that state another kind of token, without a rule of the entry about them. */
export async function statedKinds(config: IssuerConfig, payload: Fields): Promise<string[]> {
  const stated: string[] = []
  for (const name of KIND_CLAIMS) {
    if (config.require?.[name] !== undefined) continue
    const kind = await kindIn(config, payload, name)
    if (kind !== undefined && kind !== config.tokenUse) stated.push(name)
  }
  return stated
}

const audiencesIn = (value: unknown): string[] =>
  [value].flat().filter((name) => typeof name === 'string')

export const claimsOf = (config: IssuerConfig, payload: Fields): ReadClaims =>
  issuerRules(config).read(payload)

/** Returns a claim by its path, as the gateway reads it. */
export const claimAt = (config: IssuerConfig, payload: Fields, path: string): unknown =>
  claimsOf({ ...config, subjectClaim: path }, payload).sub

function judgeClaims(config: IssuerConfig, payload: Fields) {
  const { aud, client_id: client } = claimsOf(config, payload)
  const claims = {
    aud: audiencesIn(aud),
    client_id: typeof client === 'string' ? client : undefined,
  }
  return refusalOf(() => issuerRules(config).check(payload, claims))
}

export const judgeAudience = (config: IssuerConfig, payload: Fields) =>
  judgeClaims(withoutRules(config), payload)

export const judgeClient = (config: IssuerConfig, payload: Fields) =>
  judgeClaims({ ...openFor(config, payload), clients: config.clients }, payload)

/** Returns the required claims that the token does not have as required. */
export async function unmetRules(config: IssuerConfig, payload: Fields): Promise<string[]> {
  const open = openFor(config, payload)
  const unmet: string[] = []
  for (const [name, value] of Object.entries(config.require ?? {})) {
    if (await judgeClaims({ ...open, require: { ...ANY_KIND, [name]: value } }, payload))
      unmet.push(name)
  }
  return unmet
}

/** Returns the claims of the token that the entry refuses. */
export async function refusedClaims(config: IssuerConfig, payload: Fields): Promise<string[]> {
  const open = openFor(config, payload)
  const refused: string[] = []
  for (const name of listRefusedClaims(config)) {
    if (await judgeClaims({ ...open, refuse: [name] }, payload)) refused.push(name)
  }
  return refused
}

type Time = 'exp' | 'nbf' | 'iat' | 'lifetime'

/** Judges each time of a token. A time that is absent or not a number has no result. */
export async function judgeTimes(
  config: IssuerConfig,
  { exp, nbf, iat }: Fields,
  nowMs: number,
): Promise<Partial<Record<Time, boolean>>> {
  const whole = { sub: '-', aud: '-', exp: NEVER_SECONDS, iat: 0 }
  const open = { ...openForAny(config), subjectClaim: undefined }
  const isFine = async (rules: Partial<IssuerConfig>, times: Fields) => {
    const judged = issuerRules({ ...open, ...rules })
    const options = { nowMs, isOwn: false }
    return (
      (await refusalOf(() => principalFrom({ ...whole, ...times }, judged, options))) === undefined
    )
  }
  const anyAge = { maxTokenAge: Number.POSITIVE_INFINITY }
  const anyClock = { clockTolerance: Number.POSITIVE_INFINITY }
  return {
    ...(typeof exp === 'number' && { exp: await isFine(anyAge, { exp }) }),
    ...(typeof nbf === 'number' && { nbf: await isFine(anyAge, { nbf }) }),
    ...(typeof iat === 'number' && { iat: await isFine(anyAge, { iat }) }),
    ...(typeof exp === 'number' &&
      typeof iat === 'number' && { lifetime: await isFine(anyClock, { exp, iat }) }),
  }
}

/** Returns the claims that the gateway refuses: absent, of a wrong type, or too long. */
export async function malformedClaims(config: IssuerConfig, payload: Fields): Promise<string[]> {
  const rules = issuerRules(openForAny(config))
  try {
    await principalFrom({ ...payload, aud: '-' }, rules, { nowMs: 0, isOwn: false })
    return []
  } catch (error) {
    if (!(error instanceof Denied)) throw error
    const { issues = [] } = (error.cause ?? {}) as { issues?: { path: PropertyKey[] }[] }
    return [...new Set(issues.map(({ path }) => String(path[0])))]
  }
}
