/** Checks of credentials that operators create. */

import type { Principal } from '../../access/principal.ts'
import { tokenIdHash } from '../../access/token-id.ts'
import {
  type AccessGrant,
  deriveCutoffKeys,
  principalOfGrant,
} from '../../access/tokens/access-grant.ts'
import type { ApiKey } from '../../access/tokens/api-key-record.ts'
import { Denied } from '../../errors.ts'
import { inputRefused } from '../../routes/admin/input.ts'
import { didYouMean } from '../../suggestions/did-you-mean.ts'
import { issuableAtSeconds, revocationLookup } from '../authorization-server/grant-store.ts'
import type { AdminContext } from './admin-context.ts'

/**
 * Throws `Denied` (`permission_missing`) if the roles and scopes permit a call of the operators'
 * API that the operator may not make. Otherwise each call that creates credentials would give all
 * permissions. Does NOT check permissions elsewhere: the operator decides about those.
 */
export function refuseBeyond(
  operator: Principal,
  granted: Pick<AccessGrant, 'roles' | 'scopes'>,
  {
    authorizer,
    publicUrl,
    operatorPermissions,
  }: Pick<AdminContext, 'authorizer' | 'publicUrl' | 'operatorPermissions'>,
): void {
  const bearer = principalOfGrant({ subject: '', client: '', audiences: [], ...granted }, publicUrl)
  for (const permission of operatorPermissions) {
    if (authorizer(bearer, permission) && !authorizer(operator, permission))
      throw new Denied({ code: 'permission_missing', permission })
  }
}

/**
 * Throws `Denied` (`invalid_input`) for a role that the policy does not have: it grants nothing. An
 * operator with a tenant gets no list of the roles of the policy, as in the console. The operator can still guess a
 * role: the status for one that exists is 201 or 403 (see {@link refuseBeyond}), which is what each use of it shows.
 */
export function refuseUnknownRoles(
  operator: Principal,
  named: readonly string[],
  { roles }: Pick<AdminContext, 'roles'>,
): void {
  for (const [index, role] of named.entries()) {
    if (roles.includes(role)) continue
    const advice = didYouMean(role, roles) ?? `the roles are ${roles.join(', ')}`
    const suffix = operator.tenant === undefined ? `; ${advice}` : ''
    throw inputRefused('body', `/roles/${index}`, `must be a role of the policy${suffix}`)
  }
}

interface DescribedClient {
  readonly grants: readonly string[]
  readonly roles?: readonly string[] | undefined
  readonly scopes?: readonly string[] | undefined
}

/** Returns the most roles and scopes that a client can get for itself, not for its users. */
export function ownGrantOf({ grants, roles = [], scopes = [] }: DescribedClient) {
  return grants.includes('client_credentials') ? { roles, scopes } : { roles: [], scopes: [] }
}

/**
 * Throws `Denied` (`invalid_input`) if the present secret of a key is revoked. The revocation lasts as
 * long as the key, so a longer life would end it.
 */
export async function refuseRevoked(
  { tokenId, subject, tenant, roles, scopes, rotatedAtSeconds }: ApiKey,
  { revocationFacts, publicUrl }: Pick<AdminContext, 'revocationFacts' | 'publicUrl'>,
): Promise<void> {
  const grant = { subject, tenant: tenant ?? undefined, client: '', roles, scopes, audiences: [] }
  const { keys, revokedBy } = await revocationLookup(revocationFacts.keys, {
    ...principalOfGrant(grant, publicUrl),
    client: undefined,
    tokenIdHash: await tokenIdHash(publicUrl, tokenId),
    issuedAtSeconds: rotatedAtSeconds,
  })
  const { values } = await revocationFacts.consult({ keys, subject })
  if (revokedBy(values) !== undefined)
    throw inputRefused('body', '/expiresInSeconds', 'must be absent, because the key is revoked')
}

/**
 * Returns the first second at which a credential can be issued: now, or the second after the
 * cutoffs of its subject, client and tenant, which would revoke an earlier one from the start. The
 * same step checks the operator's own token, which one of these cutoffs may cover. Throws `Denied`
 * (`token_revoked`, or `invalid_input` if a cutoff is too far ahead).
 */
export async function issuableSecond(
  operator: Principal,
  { subject, client = '', tenant }: Pick<AccessGrant, 'subject' | 'tenant'> & { client?: string },
  { revocationFacts, publicUrl, now }: Pick<AdminContext, 'revocationFacts' | 'publicUrl' | 'now'>,
): Promise<number> {
  const grant = { subject, client, tenant, roles: [], scopes: [], audiences: [] }
  const own = await revocationLookup(revocationFacts.keys, operator)
  const keys = [...own.keys, ...(await deriveCutoffKeys(revocationFacts.keys, grant, publicUrl))]
  const { values } = await revocationFacts.consult({ keys, subject: operator.subject })
  const by = own.revokedBy(values.slice(0, own.keys.length))
  if (by !== undefined) throw new Denied({ code: 'token_revoked', by })
  try {
    return issuableAtSeconds(values.slice(own.keys.length), now())
  } catch (error) {
    if (!(error instanceof Denied)) throw error
    throw inputRefused('body', '', 'names a client that was disabled less than a minute ago')
  }
}
