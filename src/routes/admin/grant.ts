/** What operators hand out: no more power over the gateway than they have, and good from the start. */
import type { Authorizer } from '../../authorization/permissions.ts'
import { Denied } from '../../errors.ts'
import { principalOfGrant } from '../../oauth/actor.ts'
import { cutOffKeysOf, type GrantStore, issuableAtSeconds } from '../../oauth/grant-store.ts'
import { revocationQuestion } from '../../oauth/token-state.ts'
import type { AccessGrant } from '../../tokens/access-grant.ts'
import type { Principal } from '../../tokens/principal.ts'
import { inputRefused } from './call.ts'
import { OPERATOR_PERMISSIONS } from './permissions.ts'
import { refuseRevoked } from './standing.ts'

/** What a grant of an operator is judged by. */
export interface GrantBounds {
  readonly authorizer: Authorizer
  readonly cutOffFacts: GrantStore
  /** The gateway's own issuer identifier. */
  readonly publicUrl: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

type Granted = Pick<AccessGrant, 'subject' | 'client' | 'tenant' | 'roles' | 'scopes'>

/**
 * Throws `Denied` (`permission_missing`) where whoever gets the roles and scopes could do something at
 * the operators' API that the operator may not do: otherwise each call that hands out credentials
 * would be worth all others. What they may do elsewhere is for the operator to say.
 */
export function refuseBeyond(
  operator: Principal,
  granted: Pick<Granted, 'roles' | 'scopes'>,
  { authorizer, publicUrl }: Pick<GrantBounds, 'authorizer' | 'publicUrl'>,
): void {
  const bearer = principalOfGrant({ subject: '', client: '', audiences: [], ...granted }, publicUrl)
  for (const permission of OPERATOR_PERMISSIONS) {
    if (authorizer(bearer, permission) && !authorizer(operator, permission))
      throw new Denied({ code: 'permission_missing', permission })
  }
}

interface DescribedClient {
  readonly grants: readonly string[]
  readonly roles?: readonly string[] | undefined
  readonly scopes?: readonly string[] | undefined
}

/** What a client can get for itself, at most; roles of its users are not its own. */
export function ownGrantOf({ grants, roles = [], scopes = [] }: DescribedClient) {
  return grants.includes('client_credentials') ? { roles, scopes } : { roles: [], scopes: [] }
}

/**
 * The first second that a credential can be of: now, or the one after the cut-offs of its subject,
 * client and tenant; one of the same second would be dead as long as it lives. In the same step the
 * operator's own token is looked at: one that such a cut-off ends must not make what is of the second
 * behind it. Throws `Denied` (`token_revoked`; `input_invalid` for what was ended for good), and
 * `Unavailable`.
 */
export async function issuableSecond(
  operator: Principal,
  { subject, client, tenant }: Omit<Granted, 'roles' | 'scopes' | 'client'> & { client?: string },
  { cutOffFacts, publicUrl, now }: Omit<GrantBounds, 'authorizer'>,
): Promise<number> {
  const grant = { subject, client: client ?? '', tenant, roles: [], scopes: [], audiences: [] }
  const question = await revocationQuestion(operator)
  const keys = [...question.keys, ...(await cutOffKeysOf(grant, publicUrl))]
  const { values } = await cutOffFacts.consult({ keys })
  const asked = question.keys.length
  refuseRevoked(question, values.slice(0, asked))
  try {
    return issuableAtSeconds(values.slice(asked), now())
  } catch (error) {
    if (!(error instanceof Denied)) throw error
    throw inputRefused('body', '', 'is about a client that was ended')
  }
}
