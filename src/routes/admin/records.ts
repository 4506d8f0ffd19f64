/** Read-only operators' calls: the audit trail, and the public data of the signing keys. */
import * as z from 'zod'
import { chainPageSchema, chainQuerySchema } from '../../audit/chain-log.ts'
import { auditEventSchema } from '../../audit/event.ts'
import { auditQuerySchema } from '../../audit/log.ts'
import { Unavailable } from '../../errors.ts'
import type { PolicyLimit } from '../../policy/policy.ts'
import { type SigningJwk, signingKeyState } from '../../tokens/signing-keys.ts'
import { type AdminCall, adminGroup, timeOf } from './call.ts'
import { cursor, time } from './schemas.ts'
import type { AdminOptions } from './stores.ts'

const keyView = () =>
  z.strictObject({
    kid: z.string(),
    alg: z.string(),
    state: z
      .enum(['active', 'next', 'retired'])
      .describe('signs; will sign; signs no more, and verifies until it expires'),
    notBefore: time.optional(),
    expiresAt: time.optional(),
  })

function viewOf(key: SigningJwk, keys: readonly SigningJwk[], nowMs: number) {
  const state = signingKeyState(key, keys, nowMs)
  return {
    kid: key.kid,
    alg: key.alg,
    state: state === 'active' || state === 'next' ? state : 'retired',
    ...(key.nbf !== undefined && { notBefore: timeOf(key.nbf) }),
    ...(key.exp !== undefined && { expiresAt: timeOf(key.exp) }),
  } satisfies z.infer<ReturnType<typeof keyView>>
}

/** Creates the calls below `/-/admin/audit` and `/-/admin/keys`. */
export function recordCalls(
  { auditLog, chainLog, signingKeys, now }: AdminOptions,
  limits: readonly PolicyLimit[],
): AdminCall[] {
  const call = adminGroup('Records', limits)
  return [
    call({
      method: 'GET',
      path: '/audit',
      permission: 'audit:read',
      id: 'queryAudit',
      summary: 'Ask what was decided',
      description: 'Events arrive a second or two after the decision.',
      query: auditQuerySchema,
      status: 200,
      answer: 'Events, newest first.',
      reply: () => z.strictObject({ events: z.array(auditEventSchema), cursor }),
      handle({ query }) {
        if (auditLog === undefined) throw new Unavailable('audit_log', 'unreachable')
        return auditLog.query(query)
      },
    }),
    call({
      method: 'GET',
      path: '/audit/chain',
      permission: 'audit:verify',
      id: 'readAuditChain',
      summary: 'Read the audit trail with its hashes',
      description:
        'For `portcullis audit verify`: whoever verifies computes the hashes anew, and does not ask ' +
        'the gateway whether they are good.',
      query: chainQuerySchema,
      status: 200,
      answer: 'Rows as they are stored, in the order of the chain.',
      reply: () => chainPageSchema,
      handle({ query }) {
        if (chainLog === undefined) throw new Unavailable('audit_log', 'unreachable')
        return chainLog.read(query)
      },
    }),
    call({
      method: 'GET',
      path: '/keys',
      permission: 'keys:list',
      id: 'listKeys',
      summary: 'List the signing keys',
      status: 200,
      answer: 'Their public facts, in the order of the configuration.',
      reply: () => z.strictObject({ keys: z.array(keyView()) }),
      handle: () => ({ keys: signingKeys.map((key) => viewOf(key, signingKeys, now())) }),
    }),
  ]
}
