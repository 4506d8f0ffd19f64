/** Operators' calls that erase a person from the audit trail. */
import * as z from 'zod'
import type { Erasure } from '../../audit/erasure.ts'
import { Unavailable } from '../../errors.ts'
import type { PolicyLimit } from '../../policy/policy.ts'
import { newErasureSchema } from '../../validators/erasure.ts'
import { type AdminCall, adminGroup, inputRefused, unknownId } from './call.ts'
import { idParams, time } from './schemas.ts'
import type { AdminOptions } from './stores.ts'

const erasureView = () =>
  z.strictObject({
    id: z.uuid(),
    state: z
      .enum(['pending', 'running', 'done'])
      .describe('`done`: it is in the database and in its export no more'),
    orderedAt: time.describe('what was decided until then is erased'),
    rows: z.int().describe('how many rows of the chain were erased, once it is done'),
  })

const viewOf = ({ orderedMs, ...erasure }: Erasure) =>
  ({ ...erasure, orderedAt: new Date(orderedMs).toISOString() }) satisfies z.infer<
    ReturnType<typeof erasureView>
  >

/** Creates the calls below `/-/admin/audit/erasures`. */
export function erasureCalls(
  { auditErasures, overflowRedaction }: AdminOptions,
  limits: readonly PolicyLimit[],
): AdminCall[] {
  const call = adminGroup('Records', limits)

  function erasures() {
    if (auditErasures === undefined) throw new Unavailable('audit_log', 'unreachable')
    return auditErasures
  }

  return [
    call({
      method: 'POST',
      path: '/audit/erasures',
      permission: 'audit:erase',
      id: 'createErasure',
      summary: 'Erase somebody from the audit trail',
      description:
        'Events stay, and so do their hashes: what was decided, when and why. Who it was, from ' +
        'where, and what joins the event with records of others goes. The audit Worker does it, in ' +
        'the database and in its export; ask for the erasure to see how far it is. What the person ' +
        'does from now on is recorded again. Nobody can erase themselves.',
      body: newErasureSchema,
      example: { subject: 'alice', issuer: 'https://idp.example.com' },
      status: 201,
      answer: 'Ordered.',
      reply: erasureView,
      async handle({ body, operator, changed }) {
        // Otherwise the trail could not show any more who ordered what.
        if (body.subject === operator.subject && body.issuer === operator.issuer)
          throw inputRefused('body', '/subject', 'is who asks: somebody else has to')
        const erasure = await erasures().order(body)
        // The erasure is ordered from here on, whatever happens to this request.
        changed('audit.erase', erasure.id)
        await overflowRedaction.redact(body)
        return viewOf(erasure)
      },
    }),
    call({
      method: 'GET',
      path: '/audit/erasures/:id',
      permission: 'audit:erase',
      id: 'getErasure',
      summary: 'Ask how far an erasure is',
      params: idParams,
      status: 200,
      answer: 'The erasure. It names nobody.',
      reply: erasureView,
      async handle({ params: { id } }) {
        const erasure = await erasures().find(id)
        if (erasure === undefined) throw unknownId()
        return viewOf(erasure)
      },
    }),
  ]
}
