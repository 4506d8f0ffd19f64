/** Operators' calls that create, list and delete bans. */

import * as z from 'zod/mini'
import { BAN_SCOPES } from '../../access/abuse/ban.ts'
import { BAN_KINDS, type Ban, newBanSchema } from '../../access/abuse/ban-record.ts'
import { type AdminCall, adminGroup } from '../../routes/admin/call.ts'
import {
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
import {
  confinedTo,
  listedFor,
  normalizeValue,
  ownedBy,
  refuseRemoval,
  refuseTenant,
} from '../../routes/admin/tenant.ts'
import { describe } from '../../validators/checks.ts'
import { modeSchema } from '../../validators/mode.ts'
import { extended } from '../../validators/schema-parts.ts'
import type { AdminContext } from './admin-context.ts'
import { waitSchema } from './wait.ts'

const banView = () =>
  z.strictObject({
    id: z.uuid(),
    kind: z.enum(BAN_KINDS),
    value: z.string().check(describe('normalized: an IPv6 address is its /64')),
    issuer: z
      .nullable(z.string())
      .check(describe('null for an address, and for all issuers that were trusted')),
    reason: z.nullable(z.string()),
    ...ownedView,
    createdAt: time,
    createdBy: z.string().check(describe('subject of the operator, or portcullis')),
    createdByName,
    expiresAt: time,
    refuses: z
      .enum(BAN_SCOPES)
      .check(
        describe('credentials: an automatic ban of an address, which refuses no anonymous request'),
      ),
    mode: modeSchema.check(
      describe(
        'observe: the ban refuses no request; audit events record the requests that it would refuse',
      ),
    ),
  })

function viewOf({ createdAtSeconds, expiresAtSeconds, issuers: _, ...ban }: Ban) {
  return {
    ...ban,
    ...ownedViewOf(ban),
    createdAt: timeOf(createdAtSeconds),
    expiresAt: timeOf(expiresAtSeconds),
  } satisfies z.infer<ReturnType<typeof banView>>
}

/** A ban of the platform that does not depend on a tenant: it refuses members of every tenant. */
const isOfEveryTenant = ({ tenant }: Ban): boolean => tenant === undefined

export function banCalls(context: AdminContext): AdminCall[] {
  const { bans, issuers, waitUntilInForce } = context
  const call = adminGroup('Bans', context)
  return [
    call({
      method: 'POST',
      path: '/bans',
      permission: 'bans:create',
      id: 'createBan',
      summary: 'Ban an address or a subject',
      description:
        'An IPv6 address means its /64. The ban applies everywhere, from the next request that ' +
        'requests a token or counts in a limit. The response to a banned caller says when the ban ends. ' +
        'An operator with a tenant bans subjects as members of its tenant, and no addresses (403).',
      query: waitSchema,
      body: newBanSchema,
      example: { kind: 'address', value: '203.0.113.7', seconds: 3_600 },
      status: 201,
      response: 'The ban is in force.',
      reply: () => extended(banView(), { earlier }),
      async handle({ query, body, operator, scope, changed }) {
        if (body.kind === 'address') refuseTenant(scope)
        const covered = {
          value: body.kind === 'address' ? normalizeValue(body.value) : body.value,
          ...ownedBy(scope, { issuer: body.issuer, tenant: body.tenant }, issuers),
        }
        const before = await earlierOf(bans.bannedUntil({ kind: body.kind, ...covered }))
        const ban = await bans.create({
          ...body,
          issuer: body.issuer,
          ...covered,
          ...createdByOf(operator),
        })
        changed('ban.create', ban.id)
        await waitUntilInForce(query)
        return { ...viewOf(ban), ...before }
      },
    }),
    call({
      method: 'GET',
      path: '/bans',
      permission: 'bans:list',
      id: 'listBans',
      summary: 'List bans',
      description:
        'Operators with a tenant see the bans within their tenant, and those of the platform that apply ' +
        'in every tenant.',
      response: 'Bans in force, newest first.',
      ...listing('bans', bans.list, banView, viewOf, {
        listedFor: (scope) => listedFor(scope, (ban: Ban) => ban, isOfEveryTenant),
      }),
    }),
    call({
      method: 'DELETE',
      path: '/bans/:id',
      permission: 'bans:delete',
      id: 'deleteBan',
      summary: 'Lift a ban',
      params: idParams,
      description: 'Only operators without a tenant lift a ban that the platform owns.',
      response: 'The ban is lifted.',
      async handle({ params: { id }, scope, changed }) {
        if (confinedTo(scope) !== undefined)
          refuseRemoval(scope, await existing(bans.find(id)), (ban) => ban, isOfEveryTenant)
        await existing(bans.remove(id))
        changed('ban.delete', id)
      },
    }),
  ]
}
