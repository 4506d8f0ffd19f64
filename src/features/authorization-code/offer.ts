/** What a policy offers at `/oauth/authorize`: resources of the gateway, and the permissions there. */
import type { PolicyAuthorizer } from '../../access/permissions.ts'
import type { Principal } from '../../access/principal.ts'
import { isResourceOf } from '../../access/tokens/narrowed.ts'
import { oauthRefused } from '../../access/tokens/rejection.ts'
import type { Client } from '../authorization-server/client.ts'
import { isPermission, isWithin, type ScopeOfRoles } from '../authorization-server/scope.ts'
import { canonicalResource, routesAt } from '../authorization-server/target.ts'

/** More scopes than any token should have. */
const MAX_SCOPES = 100

/** A route of the policy, with the permissions that its callers may need. */
export interface OfferedRoute {
  readonly path: string
  /** Undefined: every host. */
  readonly host: string | undefined
  readonly permissions: readonly string[]
}

export interface OfferOptions {
  readonly routes: readonly OfferedRoute[]
  /** The gateway's public URL. */
  readonly issuer: string
  readonly authorizer: PolicyAuthorizer
  readonly scopeOfRoles: ScopeOfRoles
}

/** Creates the offer. It is computed from the policy once. */
export function createOffer({ routes, issuer, authorizer, scopeOfRoles }: OfferOptions) {
  const findRoutes = routesAt(routes, issuer)

  /** Returns the permissions of the routes at and below a path. Undefined: there is no such route. */
  function permissionsAt(path: string): readonly string[] | undefined {
    const below = findRoutes(path)
    return below.length === 0 ? undefined : below.flatMap(({ permissions }) => permissions)
  }

  return {
    /** All permissions of the policy, for `scopes_supported` (RFC 8414 section 2). */
    scopes: [...new Set(routes.flatMap(({ permissions }) => permissions))] as readonly string[],

    /**
     * Returns the audiences for the requested resources: the gateway, and each path of it. Throws
     * `Denied` (`invalid_target`) for a resource that is no route, or not for this client.
     */
    audiencesOf(resources: readonly string[], { audiences }: Client): readonly string[] {
      const spelled = [...new Set(resources.map((name) => canonicalResource(name, issuer)))]
      const named = spelled.filter((name) => name !== issuer)
      for (const name of named) {
        const isOffered =
          isResourceOf(name, issuer) && permissionsAt(name.slice(issuer.length)) !== undefined
        if (!isOffered || !(audiences.includes(issuer) || audiences.includes(name)))
          throw oauthRefused('invalid_target', 'resource_not_offered')
      }
      // A resource that is the gateway itself includes all of its paths.
      const isWhole = spelled.length > named.length || resources.length === 0
      if (isWhole && !audiences.includes(issuer))
        throw oauthRefused('invalid_target', 'resource_not_offered')
      return isWhole ? [issuer] : [issuer, ...named]
    },

    /**
     * Returns the permissions that a client gets for a user: those of the routes of its audiences
     * that the client requests and may have, and that the user has. Scopes that name no permission,
     * such as `openid`, are ignored (RFC 6749 section 3.3). Throws `Denied`: `invalid_scope` if
     * nothing of the request exists there, `access_denied` if the user has nothing of it.
     */
    scopesFor(
      user: Principal,
      client: Client,
      requested: readonly string[] | undefined,
      audiences: readonly string[],
    ): readonly string[] {
      const resources = audiences.filter((name) => isResourceOf(name, issuer))
      const offered =
        resources.length === 0
          ? routes.flatMap(({ permissions }) => permissions)
          : resources.flatMap((name) => permissionsAt(name.slice(issuer.length)) ?? [])
      const names = requested?.filter(isPermission) ?? []
      const wanted = [...new Set(offered)].filter(
        (name) =>
          (names.length === 0 || isWithin(name, names)) &&
          (client.scopes === undefined || isWithin(name, client.scopes)),
      )
      if (wanted.length === 0 || wanted.length > MAX_SCOPES)
        throw oauthRefused('invalid_scope', 'scope_not_offered')
      const held = wanted.filter(
        (name) =>
          authorizer(user, name) &&
          (user.roles.length === 0 || scopeOfRoles(user.roles, name).includes(name)),
      )
      if (held.length === 0) throw oauthRefused('access_denied', 'scope_not_held')
      return held
    },
  }
}

export type Offer = ReturnType<typeof createOffer>
