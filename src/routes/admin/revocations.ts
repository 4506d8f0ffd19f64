/** Operators' calls that create, list and delete revocations. */

import * as z from 'zod/mini'
import { newRevocationSchema, REVOCATION_KINDS, type Revocation } from '../../revocation/record.ts'
import { describe } from '../../validators/checks.ts'
import { type AdminCall, adminGroup } from './call.ts'
import type { AdminContext } from './context.ts'
import { createdBy, existing, idParams, listing, time, timeOf } from './input.ts'
import { ownersOf, ownersWithin, refuseOtherTenant, type TenantScope } from './tenant.ts'

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
    reason: z.nullable(z.string()),
    createdAt: time,
    createdBy,
    expiresAt: time.check(describe('when every credential that it covers has expired')),
  })

function viewOf({ createdAtSeconds, expiresAtSeconds, issuers: _, ...revocation }: Revocation) {
  return {
    ...revocation,
    createdAt: timeOf(createdAtSeconds),
    expiresAt: timeOf(expiresAtSeconds),
  } satisfies z.infer<ReturnType<typeof revocationView>>
}

export function revocationCalls(context: AdminContext): AdminCall[] {
  const { revocations, issuers, revokedBeforeSeconds, revokedTokenSeconds } = context
  const call = adminGroup('Revocations', context)

  /** Throws `Denied` if a revocation also covers another tenant. */
  function refuseOtherTenants(scope: TenantScope, { kind, value, issuers }: Revocation): void {
    if (kind !== 'tenant') return
    refuseOtherTenant(scope, value)
    if (ownersWithin(scope, issuers).length < issuers.length) refuseOtherTenant(scope, undefined)
  }

  return [
    call({
      method: 'POST',
      path: '/revocations',
      permission: 'revocations:create',
      id: 'createRevocation',
      summary: 'Revoke tokens',
      description:
        'Revokes one `token` by its `jti`, or everything that was issued to a `session`, ' +
        '`subject`, `client` or `tenant` up to the current second. The revocation applies ' +
        'everywhere from the next request on.',
      body: newRevocationSchema,
      example: { kind: 'subject', value: 'alice', reason: 'left the company' },
      status: 201,
      response: 'The revocation is in force.',
      reply: revocationView,
      async handle({ body, operator, scope, changed }) {
        const { kind, value, issuer } = body
        const tenant = kind === 'tenant' ? value : undefined
        const revocation = await revocations.create({
          ...body,
          issuer,
          issuers: ownersOf(scope, { issuer, tenant }, issuers),
          createdBy: operator.subject,
          ttlSeconds: kind === 'token' ? revokedTokenSeconds : revokedBeforeSeconds,
        })
        changed('revocation.create', revocation.id)
        return viewOf(revocation)
      },
    }),
    call({
      method: 'GET',
      path: '/revocations',
      permission: 'revocations:list',
      id: 'listRevocations',
      summary: 'List revocations',
      response: 'Revocations in force, newest first.',
      ...listing('revocations', revocations.list, revocationView, viewOf),
    }),
    call({
      method: 'DELETE',
      path: '/revocations/:id',
      permission: 'revocations:delete',
      id: 'deleteRevocation',
      summary: 'Delete a revocation',
      description:
        'Credentials that it covers are valid again from the next request on, unless another ' +
        'revocation covers them. A single token is valid again within 10 seconds.',
      params: idParams,
      response: 'The revocation is deleted.',
      async handle({ params: { id }, operator, scope, changed }) {
        if (operator.tenant !== undefined)
          refuseOtherTenants(scope, await existing(revocations.find(id)))
        await existing(revocations.remove(id))
        changed('revocation.delete', id)
      },
    }),
  ]
}
