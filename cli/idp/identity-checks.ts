/** Checks of what the gateway reads from a token: subject, roles, scopes, tenant and others. */
import { parsePaths } from '../../src/validators/claim-path.ts'
import { type Check, doubtful, failed, passed, textOf } from './check.ts'
import { isPlainName, placesOfRoles, writtenPath } from './claims.ts'
import type { Comparison } from './comparison.ts'
import { claimsOf, malformedClaims, type ReadClaims } from './rules.ts'

/** Placeholder for a role of the policy in a suggested map. */
const ROLE = 'ROLE'
const MAX_PLACES = 3
/** Names of roles that a suggestion lists. */
const MAX_NAMES = 20

const MEANINGS = {
  sub: 'subject',
  tenant: 'tenant',
  sid: 'session',
  scope: 'scopes',
  jti: 'token id',
} as const

export async function identityChecks(comparison: Comparison): Promise<readonly Check[]> {
  const { config, presented } = comparison
  const read = claimsOf(config, presented.payload)
  const malformed = await malformedClaims(config, presented.payload)
  const others = Object.keys(MEANINGS).filter((name) => !malformed.includes(name))
  return [
    ...malformed.map((name) => malformedClaim(comparison, name, read)),
    ...(malformed.includes('roles') ? [] : [roles(comparison, read)]),
    ...others.map((name) => passed(MEANINGS[name as keyof typeof MEANINGS], read[name as 'sub'])),
    ...(read.cnf !== undefined && !malformed.includes('cnf')
      ? [{ ...passed('cnf', read.cnf), expected: 'a DPoP proof with each request' }]
      : []),
  ]
}

function malformedClaim({ config, of }: Comparison, name: string, read: ReadClaims): Check {
  const seen = read[name as keyof ReadClaims]
  if (name === 'sub' && seen === undefined && isPlainName(read.client_id)) {
    const mistake = 'the token has no subject, as tokens of client credentials of some providers'
    return failed('subject', seen, mistake, {
      remedy: 'Use the client as the subject',
      change: {
        subjectClaim: [...parsePaths(config.subjectClaim ?? 'sub'), ['client_id']].map((path) => [
          ...path,
        ]),
      },
      condition: 'subjectClaim: limits and revocations of a subject are then those of the client',
    })
  }
  if (name === 'cnf') {
    const mistake = 'the token is bound to a key in another way than DPoP (RFC 9449)'
    return failed('cnf', seen, mistake, {
      remedy: 'Request tokens that are not bound, or bound by DPoP',
    })
  }
  const isAbsent = seen === undefined
  const mistake = isAbsent
    ? `the token has no claim ${name}`
    : `the value of ${name} is not acceptable: of a wrong type, too long, or with control characters`
  const remedy = isAbsent
    ? 'Configure the provider to add it: every token must have a subject, an audience, exp and iat'
    : `Configure the provider, or the claim that ${of} reads`
  return failed(name, seen, mistake, { remedy })
}

function roles(
  { config, fields, presented: { payload }, of }: Comparison,
  read: ReadClaims,
): Check {
  const { rolesMap: _, ...unmapped } = config
  const found = claimsOf(unmapped, payload).roles as readonly unknown[]
  const held = read.roles as readonly unknown[]
  const where = textOf(config.rolesClaim)
  if (held.length > 0) return { ...passed('roles', held), expected: `in ${where}` }
  if (found.length > 0) {
    const names = found.filter(isPlainName).slice(0, MAX_NAMES)
    const mapped = Object.keys(config.rolesMap ?? {})
    const mistake = `rolesMap of ${of} maps none of the names in the token: ${textOf(found)}`
    const own = (fields.rolesMap ?? {}) as Readonly<Record<string, unknown>>
    return failed('roles', found, mistake, {
      expected: textOf(mapped),
      remedy: 'Map the names to roles of your policy, in the same upper and lower case',
      change: {
        rolesMap: {
          ...own,
          ...Object.fromEntries(names.map((name) => [name, roleFor(name, own)])),
        },
      },
      condition: `rolesMap: replace ${ROLE} by a role of your policy, and leave out names that shall have no role`,
    })
  }
  const places = placesOfRoles(payload).slice(0, MAX_PLACES).map(writtenPath)
  const [place] = places
  if (place === undefined) {
    const remedy =
      config.scopes === 'ignore'
        ? 'Add roles or groups to access tokens at the provider'
        : 'Add roles or groups to access tokens at the provider. Without roles, a token has what its scopes name'
    return doubtful('roles', held, `the token has no roles in ${where} or elsewhere`, {
      expected: `in ${where}`,
      remedy,
    })
  }
  const mistake = `the token has no roles in ${where}, and ${places.map(textOf).join(', ')} looks like roles`
  return failed('roles', held, mistake, {
    expected: `in ${where}`,
    remedy:
      'Set rolesClaim to the claim with the roles, if the provider controls it and users cannot change it',
    change: { rolesClaim: place },
    condition: `rolesClaim: only if users cannot change ${textOf(place)} themselves`,
  })
}

/** Returns the role of a name that differs in upper and lower case only. */
function roleFor(name: string, map: Readonly<Record<string, unknown>>): unknown {
  const same = Object.keys(map).find((one) => one.toLowerCase() === name.toLowerCase())
  return same === undefined ? ROLE : map[same]
}
