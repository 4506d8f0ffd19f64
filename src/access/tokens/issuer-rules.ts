/** The rules of an issuer's configuration for its tokens, prepared once for all of them. */

import { headerWord, listWord } from '../../http/header-word.ts'
import type { ClaimName } from '../../problems/checks.ts'
import type { Signer } from '../../problems/reasons.ts'
import {
  type ClaimPath,
  type ClaimSources,
  type Path,
  parsePath,
  parsePaths,
} from '../../validators/claim-path.ts'
import {
  DEFAULT_ROLES_CLAIM,
  DEFAULT_TENANT_CLAIM,
  type IssuerConfig,
  listRefusedClaims,
  mediaType,
  NO_TYPE,
} from '../../validators/issuer.ts'
import { createNameMap, type NameMap, starIn } from '../../validators/name-pattern.ts'
import type { Principal } from '../principal.ts'
import { type JwsHeader, readOwnMember } from './jws.ts'
import { hasValue, present, valuesAt } from './present.ts'
import { rejected, rejectedFor } from './rejection.ts'

type Payload = Readonly<Record<string, unknown>>

export type IssuerRules = ReturnType<typeof issuerRules>

/** The claims of RFC 9068, and the names that some providers use for them. */
const SUBJECT: readonly Path[] = [['sub']]
const CLIENT: readonly Path[] = [['client_id'], ['azp'], ['cid'], ['appid']]
const TENANT: readonly Path[] = [[DEFAULT_TENANT_CLAIM]]
const SESSION: readonly Path[] = [['sid']]
const SCOPE: readonly Path[] = [['scope'], ['scp']]
const TOKEN_ID: readonly Path[] = [['jti']]
const AUDIENCE = 'aud'
/** Claims in which a token states its kind, and kinds that give no access to an API. */
export const KIND_CLAIMS: readonly string[] = ['typ', 'type', 'token_type', 'token_use']
const OTHER_KIND = /^(id|refresh|offline|logout)([ _-]?token)?$/i

/** A valid subject has at most 255 characters. A sender chooses the length of an invalid one. */
const MAX_SIGNER_CHARS = 256

export function issuerRules(config: IssuerConfig) {
  const types = new Set([config.typ].flat().map(mediaType))
  const audiences = [config.audience].flat()
  const isOurs = (name: unknown) => audiences.some((audience) => audience === name)
  const audience = createReader(config.audienceClaim, [[AUDIENCE]])
  const { tenantClaim, rolesClaim } = config
  const subject = createReader(config.subjectClaim, SUBJECT)
  const client = createReader(config.clientClaim, CLIENT)
  const session = createReader(config.sessionClaim, SESSION)
  const tokenId = createReader(config.tokenIdClaim, TOKEN_ID)
  const tenant = createReader(
    tenantClaim === DEFAULT_TENANT_CLAIM ? undefined : tenantClaim,
    TENANT,
  )
  const plan = createReader(config.planClaim, [])
  const scope = config.scopeClaim === undefined ? SCOPE : parsePaths(config.scopeClaim)
  const scopeKeys = new Set(scope.map(keyOf))
  const rolesOfValue = rolesClaim === DEFAULT_ROLES_CLAIM ? namesIn : rolesIn
  const roles = parsePaths(rolesClaim).flatMap((path) => withAudiences(path, audiences))
  const { rolesSeparator } = config
  const toRoles = mapping(config.rolesMap)
  const toScopes = mapping(config.scopesMap)
  // A claim that the configuration refuses must be absent: null is refused too. A claim that marks another
  // kind of token is refused only if it has a value.
  const isMark = (name: string) =>
    config.refuse === undefined || (config.tokenUse === 'id' && name === 'events')
  const refused = listRefusedClaims(config).map((name) => ({
    path: parsePath(name),
    isThere: isMark(name) ? hasValue : () => true,
  }))
  const required = Object.entries(config.require ?? {}).map(
    ([name, value]) => [parsePath(name), [value].flat()] as const,
  )
  const kindClaims = KIND_CLAIMS.filter((name) => config.require?.[name] === undefined)

  function scopesOf(payload: Payload): unknown {
    // Without a configured claim, `scp` is only read in place of `scope`.
    const paths = config.scopeClaim === undefined ? scope.filter(isIn(payload)).slice(0, 1) : scope
    return toScopes(paths.flatMap((path) => valuesAt(payload, path).flatMap(scopesIn)))
  }

  function rolesOf(payload: Payload): unknown {
    return toRoles(
      roles.flatMap((path) =>
        scopeKeys.has(keyOf(path))
          ? valuesAt(payload, path).flatMap(scopesIn)
          : rolesAt(payload, path),
      ),
    )
  }

  function rolesAt(payload: Payload, path: Path): readonly unknown[] {
    const values = valuesAt(payload, path).flatMap((value) => rolesOfValue(value, path.at(-1)))
    const names = values.filter(hasValue)
    return rolesSeparator === undefined ? names : names.flatMap(splitAt(rolesSeparator))
  }

  return {
    config,
    /** Returns the headers with claims for the origin. Undefined: there are none. */
    headers: createClaimHeaders(config.identityHeaders),
    /** Throws `Denied` unless the header's `alg` is permitted. Comes before the signature. */
    checkAlgorithm({ alg }: JwsHeader) {
      const { algorithms } = config
      if (!algorithms.some((algorithm) => algorithm === alg))
        throw rejectedFor('alg', alg, algorithms)
    },
    /** Returns whose token it would be if it were authentic. Does NOT verify anything. */
    signerOf(payload: Payload): Signer {
      const text = subject(payload)
      return {
        issuer: config.issuer,
        subject: typeof text === 'string' ? text.slice(0, MAX_SIGNER_CHARS) : '',
      }
    },
    /** Throws `Denied` unless the header's `typ` is permitted. Comes after the signature. */
    checkType({ typ }: JwsHeader) {
      if (!types.has(typ === undefined ? NO_TYPE : mediaType(typ)))
        throw rejectedFor('typ', typ, [...types])
    },
    /** Reads the claims where the configuration says they are. Does NOT check their form. */
    read: (payload: Payload): Record<Exclude<ClaimName, 'sub_iss'>, unknown> => ({
      sub: subject(payload),
      aud: audience(payload),
      exp: present(payload, 'exp'),
      iat: present(payload, 'iat'),
      nbf: present(payload, 'nbf'),
      jti: tokenId(payload),
      scope: scopesOf(payload),
      roles: rolesOf(payload),
      tenant: tenant(payload),
      plan: plan(payload),
      sid: session(payload),
      client_id: client(payload),
      // Anything but null may be a binding that is not understood, and must not be dropped.
      cnf: readOwnMember(payload, 'cnf') ?? undefined,
    }),
    /** Reports whether the token has roles, even if the map drops all of them. */
    hasRoles: (payload: Payload) =>
      roles.some((path) => !scopeKeys.has(keyOf(path)) && rolesAt(payload, path).length > 0),
    /** Throws `Denied` unless the audience, the client and all other claims are as configured. */
    check(payload: Payload, claims: { aud: readonly string[]; client_id?: string | undefined }) {
      if (!claims.aud.some(isOurs)) throw rejectedFor('aud', claims.aud, audiences)
      // A token with an audience is for that audience, whatever else it says.
      const stated = config.audienceClaim === undefined ? undefined : present(payload, AUDIENCE)
      if (stated !== undefined && ![stated].flat().some(isOurs))
        throw rejectedFor('aud', stated, audiences)
      const { clients } = config
      if (clients !== undefined && !clients.some((one) => matches(one, claims.client_id)))
        throw rejected('client_id')
      for (const { path, isThere } of refused) {
        if (valuesAt(payload, path).some(isThere)) throw rejected('refused_claim')
      }
      if (kindClaims.some((name) => statesOtherKind(readOwnMember(payload, name), config)))
        throw rejected('refused_claim')
      for (const [path, accepted] of required) {
        const values = valuesAt(payload, path).flat()
        if (!accepted.some((one) => isMet(one, values))) throw rejected('required_claim')
      }
    },
  }
}

/**
 * Creates the reader of a claim with one value, from the first path that has one. Null and empty text
 * are no values. With a configured path, a whole number is text.
 */
function createReader(sources: ClaimSources | undefined, otherwise: readonly Path[]) {
  if (sources === undefined) return (payload: Payload) => firstAt(payload, otherwise)
  const paths = parsePaths(sources)
  return (payload: Payload) => {
    return numberAsText(firstAt(payload, paths))
  }
}

/** Some providers name subjects, roles and clients by numbers. */
const numberAsText = (value: unknown) => (Number.isSafeInteger(value) ? `${value}` : value)

const keyOf = (path: Path) => JSON.stringify(path)

const isIn = (payload: Payload) => (path: Path) => hasValue(present(payload, path[0] as string))

function statesOtherKind(kind: unknown, { tokenUse }: IssuerConfig): boolean {
  if (typeof kind !== 'string' || !OTHER_KIND.test(kind)) return false
  return tokenUse !== 'id' || !/^id/i.test(kind)
}

/** In a name, `{audience}` is replaced by each configured audience. */
function withAudiences(path: Path, audiences: readonly string[]): readonly Path[] {
  if (!path.some((name) => name.includes(AUDIENCE_PLACE))) return [path]
  return audiences.map((audience) =>
    path.map((name) => name.replaceAll(AUDIENCE_PLACE, () => audience)),
  )
}
const AUDIENCE_PLACE = '{audience}'

function mapping(map: NameMap | undefined): (names: readonly unknown[]) => readonly unknown[] {
  const mapName = map && createNameMap(map)
  // Values that are not names are kept, so that their token is refused.
  const mapped = (name: unknown): readonly unknown[] =>
    mapName !== undefined && typeof name === 'string' ? mapName(name) : [name]
  return (names) => [...new Set(names.flatMap((name) => [...mapped(name)]))]
}

/** Returns the values at a path. More than one only if the path has a `*`. */
function firstAt(payload: Payload, paths: readonly Path[]) {
  for (const path of paths) {
    const value = valuesAt(payload, path).find(hasValue)
    if (value !== undefined) return value
  }
  return undefined
}

const namesIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [value])

/** A list of roles, one role, the keys of an object, or a flag that is named as the role. */
function rolesIn(value: unknown, name: string | undefined): readonly unknown[] {
  if (Array.isArray(value)) return value.map(numberAsText)
  if (value === null || value === false) return []
  if (value === true) return [name]
  if (typeof value !== 'object') return [numberAsText(value)]
  return Object.entries(value).flatMap(([key, held]) => (isHeld(held) ? [key] : []))
}

const isHeld = (value: unknown) => value !== false && value !== null

/** Splits a text into names without surrounding spaces. What is no text is kept. */
const splitAt = (separator: string) => (value: unknown) => {
  if (typeof value !== 'string') return [value]
  const names = value.split(separator).map((name) => name.trim())
  return names.filter((name) => name !== '')
}

function scopesIn(value: unknown): readonly unknown[] {
  const names = typeof value === 'string' ? value.split(' ') : namesIn(value)
  return names.filter(hasValue)
}

const matches = (pattern: string, value: unknown) =>
  typeof value === 'string' && starIn(pattern, value) !== undefined

/** Null is met by the absence of the claim, and `*` by any value. */
function isMet(accepted: string | number | boolean | null, values: readonly unknown[]): boolean {
  const known = values.filter(hasValue)
  if (accepted === null) return known.length === 0
  if (accepted === '*') return known.length > 0
  return known.some((value) =>
    typeof accepted === 'string' ? matches(accepted, value) : value === accepted,
  )
}

/** Never shortened: a part of a list of groups could mean something else. */
const MAX_HEADER_CHARS = 4_096

/** Creates the function that returns the headers of a token for the origin: `identityHeaders` of a policy. Undefined: it has none of the claims. */
function createClaimHeaders(
  headers: ReadonlyMap<string, ClaimPath> = new Map(),
): (payload: Payload) => Principal['headers'] {
  const paths = [...headers].map(([name, path]) => [name, parsePath(path)] as const)
  return function readClaimHeaders(payload) {
    const found: (readonly [string, string])[] = []
    for (const [name, path] of paths) {
      const values = valuesAt(payload, path)
      const isList = values.length > 1 || Array.isArray(values[0])
      const words = values.flat().flatMap(textOf)
      const value = isList ? words.map(listWord).join(',') : headerWord(words[0] ?? '')
      if (value !== '' && value.length <= MAX_HEADER_CHARS) found.push([name, value])
    }
    return found.length === 0 ? undefined : found
  }
}

const textOf = (value: unknown): readonly string[] =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? [String(value)]
    : []
