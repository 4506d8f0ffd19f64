/** Operators' calls that create, list and delete revocations. */

import * as z from 'zod/mini'
import {
  newRevocationSchema,
  REVOCATION_KINDS,
  type Revocation,
} from '../../access/revocation/record.ts'
import { type AdminCall, adminGroup } from '../../routes/admin/call.ts'
import {
  createdBy,
  createdByName,
  createdByOf,
  earlier,
  earlierOf,
  existing,
  idParams,
  listing,
  ownedView,
  ownedViewOf,
  time,
  timeOf,
} from '../../routes/admin/input.ts'
import { confinedTo, listedFor, ownedBy, refuseRemoval } from '../../routes/admin/tenant.ts'
import { describe } from '../../validators/checks.ts'
import { extended } from '../../validators/schema-parts.ts'
import type { AdminContext } from './admin-context.ts'
import { waitSchema } from './wait.ts'

const revocationView = () =>
  z.strictObject({
    id: z.uuid(),
    kind: z.enum(REVOCATION_KINDS),
    value: z.string(),
    issuer: z
      .nullable(z.string())
      .check(
        describe(
          'null: all issuers that were trusted; for an operator with a tenant, all tenant issuers',
        ),
      ),
    ...ownedView,
    reason: z.nullable(z.string()),
    createdAt: time,
    createdBy,
    createdByName,
    expiresAt: time.check(describe('when every credential that it covers has expired')),
  })

/** A revocation of a tenant concerns it, also if the platform has ordered it. */
const ownedOf = <Item extends Pick<Revocation, 'kind' | 'value' | 'tenant' | 'owner'>>(
  item: Item,
) => (item.kind === 'tenant' ? { ...item, tenant: item.value } : item)

function viewOf({ createdAtSeconds, expiresAtSeconds, issuers: _, ...revocation }: Revocation) {
  return {
    ...revocation,
    ...ownedViewOf(ownedOf(revocation)),
    createdAt: timeOf(createdAtSeconds),
    expiresAt: timeOf(expiresAtSeconds),
  } satisfies z.infer<ReturnType<typeof revocationView>>
}

export function revocationCalls(context: AdminContext): AdminCall[] {
  const { revocations, issuers, revokedBeforeSeconds, revokedTokenSeconds, waitUntilInForce } =
    context
  const call = adminGroup('Revocations', context)

  return [
    call({
      method: 'POST',
      path: '/revocations',
      permission: 'revocations:create',
      id: 'createRevocation',
      summary: 'Revoke a token, or sign a user out everywhere',
      description:
        'Revokes one `token` by its `jti`, or logs out: everything that was issued to a `session`, ' +
        '`subject` (a user), `client` or `tenant` up to the current second. The revocation applies ' +
        'everywhere from the next request on. With `tenant`, or by an operator with a tenant, it covers ' +
        'only what members of that tenant hold.',
      query: waitSchema,
      body: newRevocationSchema,
      example: { kind: 'subject', value: 'alice', reason: 'left the company' },
      status: 201,
      response: 'The revocation is in force.',
      reply: () => extended(revocationView(), { earlier }),
      async handle({ query, body, operator, scope, changed }) {
        const { kind, value, issuer } = body
        const tenant = kind === 'tenant' ? value : body.tenant
        const owned = ownedBy(scope, { issuer, tenant }, issuers)
        // The value of a revocation of a tenant names it.
        const covered = { ...owned, tenant: kind === 'tenant' ? undefined : owned.tenant }
        const until = await earlierOf(revocations.revokedUntil({ kind, value, ...covered }))
        const revocation = await revocations.create({
          ...body,
          issuer,
          ...covered,
          ...createdByOf(operator),
          ttlSeconds: kind === 'token' ? revokedTokenSeconds : revokedBeforeSeconds,
        })
        changed('revocation.create', revocation.id)
        await waitUntilInForce(query)
        return { ...viewOf(revocation), ...until }
      },
    }),
    call({
      method: 'GET',
      path: '/revocations',
      permission: 'revocations:list',
      id: 'listRevocations',
      summary: 'List revocations',
      description: 'Operators with a tenant see the revocations within their tenant.',
      response: 'Revocations in force, newest first.',
      ...listing('revocations', revocations.list, revocationView, viewOf, {
        listedFor: (scope) => listedFor<Revocation>(scope, ownedOf),
      }),
    }),
    call({
      method: 'DELETE',
      path: '/revocations/:id',
      permission: 'revocations:delete',
      id: 'deleteRevocation',
      summary: 'Delete a revocation',
      description:
        'Credentials that it covers are valid again from the next request on, unless another ' +
        'revocation covers them. A single token is valid again within 10 seconds. Only operators without ' +
        'a tenant delete a revocation that the platform owns.',
      params: idParams,
      response: 'The revocation is deleted.',
      async handle({ params: { id }, scope, changed }) {
        if (confinedTo(scope) !== undefined)
          refuseRemoval<Revocation>(scope, await existing(revocations.find(id)), ownedOf)
        await existing(revocations.remove(id))
        changed('revocation.delete', id)
      },
    }),
  ]
}
