/** Operators' calls that create, list and delete bans. */
import * as z from 'zod'
import { BAN_KINDS, type Ban, newBanSchema } from '../../abuse/ban-record.ts'
import type { PolicyLimit } from '../../policy/policy.ts'
import { modeSchema } from '../../validators/mode.ts'
import { pageQuerySchema } from '../../validators/page.ts'
import { type AdminCall, adminGroup, timeOf, unknownId } from './call.ts'
import { cursor, idParams, time } from './schemas.ts'
import { addressOf, issuersOf } from './scope.ts'
import type { AdminOptions } from './stores.ts'

const banView = () =>
  z.strictObject({
    id: z.uuid(),
    kind: z.enum(BAN_KINDS),
    value: z.string().describe('normalised: an IPv6 address is its /64'),
    issuer: z.string().nullable().describe('null: an address, or every issuer that was trusted'),
    reason: z.string().nullable(),
    createdAt: time,
    createdBy: z.string().describe('subject of the operator, or portcullis'),
    expiresAt: time,
    mode: modeSchema.describe(
      'observe: it keeps nobody out, and the audit trail tells whom it would have',
    ),
  })

function viewOf({ createdAtSeconds, expiresAtSeconds, issuers: _, ...ban }: Ban) {
  const createdAt = timeOf(createdAtSeconds)
  return { ...ban, createdAt, expiresAt: timeOf(expiresAtSeconds) } satisfies z.infer<
    ReturnType<typeof banView>
  >
}

/** Creates the calls below `/-/admin/bans`. */
export function banCalls(
  { bans, issuers }: AdminOptions,
  limits: readonly PolicyLimit[],
): AdminCall[] {
  const call = adminGroup('Bans', limits)
  return [
    call({
      method: 'POST',
      path: '/bans',
      permission: 'bans:create',
      id: 'createBan',
      summary: 'Ban an address or a subject',
      description:
        'An IPv6 address stands for its /64. In force with the next request that asks for a ' +
        'token or counts in a limit, everywhere; the caller is told until when.',
      body: newBanSchema,
      example: { kind: 'address', value: '203.0.113.7', seconds: 3_600 },
      status: 201,
      answer: 'In force.',
      reply: banView,
      async handle({ body, by, changed }) {
        const ban = await bans.create({
          ...body,
          value: body.kind === 'address' ? addressOf(body.value) : body.value,
          issuer: body.issuer,
          issuers: issuersOf(body.issuer, issuers),
          createdBy: by,
        })
        changed('ban.create', ban.id)
        return viewOf(ban)
      },
    }),
    call({
      method: 'GET',
      path: '/bans',
      permission: 'bans:list',
      id: 'listBans',
      summary: 'List bans',
      query: pageQuerySchema,
      status: 200,
      answer: 'Bans that hold, newest first.',
      reply: () => z.strictObject({ bans: z.array(banView()), cursor }),
      async handle({ query }) {
        const { items, ...rest } = await bans.list(query)
        return { bans: items.map(viewOf), ...rest }
      },
    }),
    call({
      method: 'DELETE',
      path: '/bans/:id',
      permission: 'bans:delete',
      id: 'deleteBan',
      summary: 'Lift a ban',
      params: idParams,
      status: 204,
      answer: 'Lifted.',
      async handle({ params: { id }, changed }) {
        if (!(await bans.remove(id))) throw unknownId()
        changed('ban.delete', id)
      },
    }),
  ]
}
