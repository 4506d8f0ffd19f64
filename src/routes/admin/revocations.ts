/** Operators' calls that create, list and delete revocations. */
import * as z from 'zod'
import type { Principal } from '../../identity/principal.ts'
import type { PolicyLimit } from '../../policy/policy.ts'
import {
  type NewRevocation,
  newRevocationSchema,
  REVOCATION_KINDS,
  type Revocation,
} from '../../revocation/record.ts'
import { pageQuerySchema } from '../../validators/page.ts'
import { type AdminCall, adminGroup, timeOf, unknownId } from './call.ts'
import { cursor, idParams, time } from './schemas.ts'
import { issuersOf } from './scope.ts'
import type { AdminOptions } from './stores.ts'
import { ownersWithin, refuseElsewhere } from './tenant.ts'

const ISSUER_TOLD =
  'null: every issuer that was trusted; by an operator with a tenant, every one whose tenant that is'

const revocationView = () =>
  z.strictObject({
    id: z.uuid(),
    kind: z.enum(REVOCATION_KINDS),
    value: z.string(),
    issuer: z.string().nullable().describe(ISSUER_TOLD),
    reason: z.string().nullable(),
    createdAt: time,
    createdBy: z.string().describe('subject of the operator'),
    expiresAt: time.describe('when nothing that it covers is left'),
  })

function viewOf(revocation: Revocation): z.infer<ReturnType<typeof revocationView>> {
  const { id, kind, value, issuer, reason, createdBy } = revocation
  const createdAt = timeOf(revocation.createdAtSeconds)
  const expiresAt = timeOf(revocation.expiresAtSeconds)
  return { id, kind, value, issuer, reason, createdAt, createdBy, expiresAt }
}

/** Creates the calls below `/-/admin/revocations`. */
export function revocationCalls(
  { revocations, tenantIssuers, issuers, revokedBeforeSeconds, revokedTokenSeconds }: AdminOptions,
  limits: readonly PolicyLimit[],
): AdminCall[] {
  const call = adminGroup('Revocations', limits)

  /**
   * Returns the issuers that an operator's revocation covers. Throws `Denied` for another tenant.
   */
  function ownersOf(operator: Principal, body: NewRevocation): readonly string[] {
    if (body.kind !== 'tenant') return issuersOf(body.issuer, issuers)
    const wall = { call: 'revocations:create', tenantIssuers } as const
    refuseElsewhere(operator, body.value, wall)
    return ownersWithin(operator, issuersOf(body.issuer, issuers), wall)
  }

  /** Throws `Denied` if a revocation also covers another tenant. */
  function refuseOtherTenants(operator: Principal, { kind, value, issuers }: Revocation): void {
    if (kind !== 'tenant') return
    const wall = { call: 'revocations:delete', tenantIssuers } as const
    refuseElsewhere(operator, value, wall)
    if (ownersWithin(operator, issuers, wall).length < issuers.length)
      refuseElsewhere(operator, undefined, wall)
  }

  return [
    call({
      method: 'POST',
      path: '/revocations',
      permission: 'revocations:create',
      id: 'createRevocation',
      summary: 'Take access away',
      description:
        'Of a `token`, by its `jti`; or of everything that was issued to a `session`, `subject`, ' +
        '`client` or `tenant` up to this second. In force with the next request, everywhere.',
      body: newRevocationSchema,
      example: { kind: 'subject', value: 'alice', reason: 'left the company' },
      status: 201,
      answer: 'In force.',
      reply: revocationView,
      async handle({ body, operator, by, changed }) {
        const revocation = await revocations.create({
          ...body,
          issuer: body.issuer,
          issuers: ownersOf(operator, body),
          createdBy: by,
          ttlSeconds: body.kind === 'token' ? revokedTokenSeconds : revokedBeforeSeconds,
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
      summary: 'List what was taken away',
      query: pageQuerySchema,
      status: 200,
      answer: 'Revocations in force, newest first.',
      reply: () => z.strictObject({ revocations: z.array(revocationView()), cursor }),
      async handle({ query }) {
        const { items, ...rest } = await revocations.list(query)
        return { revocations: items.map(viewOf), ...rest }
      },
    }),
    call({
      method: 'DELETE',
      path: '/revocations/:id',
      permission: 'revocations:delete',
      id: 'deleteRevocation',
      summary: 'Take a revocation back',
      description:
        'What it ended is good again with the next request, a single token within 10 seconds, unless ' +
        'another revocation covers it.',
      params: idParams,
      status: 204,
      answer: 'Taken back.',
      async handle({ params: { id }, operator, changed }) {
        if (operator.tenant !== undefined) {
          const revocation = await revocations.find(id)
          if (revocation === undefined) throw unknownId()
          refuseOtherTenants(operator, revocation)
        }
        if (!(await revocations.remove(id))) throw unknownId()
        changed('revocation.delete', id)
      },
    }),
  ]
}
