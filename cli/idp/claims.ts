/** Finds in the claims of a token what an entry could use. */
import { KIND_CLAIMS } from '../../src/access/tokens/issuer-rules.ts'

import type { IssuerConfig } from '../../src/validators/issuer.ts'
import { listRefusedClaims } from '../../src/validators/issuer.ts'
import type { Fields } from './check.ts'
import { kindIn } from './rules.ts'

/** Longer names are not suggested. */
const MAX_NAME_CHARS = 256
const MAX_DEPTH = 4
/** The last part of a name, such as `https://example.com/roles`. */
const ROLES = /(^|[^a-z])(roles?|groups?|authorities)$/i
/** The logout token is no ID token, although the same default refuses it. */
const LOGOUT = 'events'

/** Returns the claims by which a token is known as an ID token. */
export async function marksOfIdToken(
  config: IssuerConfig,
  payload: Fields,
): Promise<readonly string[]> {
  const defaults = { ...config, refuse: undefined, tokenUse: undefined, typ: 'JWT' }
  const marks = listRefusedClaims(defaults).filter(
    (name) => name !== LOGOUT && payload[name] != null,
  )
  for (const name of KIND_CLAIMS) {
    if ((await kindIn(config, payload, name)) === 'id') marks.push(name)
  }
  return marks
}

/** Returns a rule that access tokens of this kind meet, and ID tokens usually do not. */
export function ruleForAccessTokens(payload: Fields): Fields {
  const fixed = [
    ['token_use', 'access'],
    ['typ', 'Bearer'],
    ['token_type', 'access_token'],
    ['token_type', 'access'],
  ].find(([name = '', value]) => payload[name] === value)
  if (fixed !== undefined) return { require: { [fixed[0] as string]: fixed[1] } }
  const scope = ['scope', 'scp', 'client_id'].find((name) => payload[name] != null)
  return scope === undefined ? {} : { require: { [scope]: '*' } }
}

/** Returns where a token has claims that are named like roles and contain names. */
export function placesOfRoles(payload: Fields): readonly (readonly string[])[] {
  return placesIn(payload, [])
}

function placesIn(value: unknown, path: readonly string[]): readonly (readonly string[])[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return []
  return Object.entries(value).flatMap(([name, member]) => {
    const here = [...path, name]
    if (ROLES.test(name) && name.length <= MAX_NAME_CHARS && hasNames(member)) return [here]
    return here.length < MAX_DEPTH ? placesIn(member, here) : []
  })
}

function hasNames(value: unknown): boolean {
  if (typeof value === 'string') return value !== ''
  if (Array.isArray(value)) return value.length > 0 && value.every((one) => typeof one === 'string')
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0
}

/** Returns a path as an operator writes it: as one text if the name cannot be misread. */
export function writtenPath([...path]: readonly string[]): string | string[] {
  const [name = ''] = path
  return path.length === 1 && (/^[^./*]+$/.test(name) || /^https?:/.test(name)) ? name : path
}

/** Reports whether a value of a token may be part of a suggestion. */
export const isPlainName = (value: unknown): value is string =>
  typeof value === 'string' && /^[\x21-\x7e]+$/.test(value) && value.length <= MAX_NAME_CHARS
