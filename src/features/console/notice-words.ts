/** Says what an action has done: who or what, until when, and what it has replaced. */
import * as z from 'zod/mini'
import { numberOf } from './markup.ts'

const earlier = z.optional(z.nullable(z.object({ until: z.nullable(z.string()) })))
const revocation = z.object({
  kind: z.string(),
  value: z.string(),
  tenant: z.nullable(z.string()),
  createdAt: z.string(),
  expiresAt: z.string(),
  earlier,
})
const ban = z.object({
  kind: z.string(),
  value: z.string(),
  tenant: z.nullable(z.string()),
  expiresAt: z.string(),
  earlier,
})
const override = z.object({
  limit: z.string(),
  value: z.string(),
  tenant: z.nullable(z.string()),
  requests: z.number(),
  expiresAt: z.nullable(z.string()),
  replaces: z.optional(
    z.nullable(z.object({ requests: z.number(), expiresAt: z.nullable(z.string()) })),
  ),
})
const assignment = z.object({
  by: z.string(),
  value: z.string(),
  plan: z.string(),
})
const key = z.object({
  name: z.string(),
  subject: z.string(),
  plan: z.nullable(z.string()),
  expiresAt: z.nullable(z.string()),
})

type Words = (answer: unknown, form: URLSearchParams) => readonly string[]

const at = (time: string): string => `${time.slice(0, 19).replace('T', ' ')} UTC`
const until = (time: string | null): string =>
  time === null ? 'until it is removed' : `until ${at(time)}`
const within = (tenant: string | null, name = ''): string =>
  tenant === null || tenant === name ? '' : ` in the tenant ${tenant}`
const ofForm = (form: URLSearchParams, name: string): string => form.get(name) ?? ''
const tupleOf = (form: URLSearchParams): string =>
  `${ofForm(form, 'subject')} is ${ofForm(form, 'relation')} of ${ofForm(form, 'object')}`

const WORDS: Readonly<Record<string, Words>> = {
  createRevocation(answer) {
    const { kind, value, tenant, createdAt, earlier: before } = z.parse(revocation, answer)
    const what = `${kind} ${value}${within(tenant, value)}`
    if (kind === 'token')
      return [
        `Revoked: ${what}. No gateway accepts it from now on.`,
        ...(before ? ['It was already revoked.'] : []),
      ]
    return [
      `Revoked: ${what}. What was issued until ${at(createdAt)} is refused from now on.`,
      ...(before?.until
        ? [`Already revoked until ${at(before.until)}, now until ${at(createdAt)}.`]
        : []),
      'What is issued later is accepted: ban the caller to stop that too.',
    ]
  },
  deleteRevocation: (_, form) => [
    `Removed: the revocation of ${ofForm(form, 'about')}. What it covered is accepted again, unless another revocation covers it.`,
  ],
  createBan(answer) {
    const { kind, value, tenant, expiresAt, earlier: before } = z.parse(ban, answer)
    const what = `Banned: ${kind} ${value}${within(tenant)}`
    if (!before?.until) return [`${what}, ${until(expiresAt)}.`]
    return before.until > expiresAt
      ? [`${what}, still ${until(before.until)}: an earlier ban ends later than the new one.`]
      : [`${what}. Already banned ${until(before.until)}, now ${until(expiresAt)}.`]
  },
  deleteBan: (_, form) => [
    `Lifted: the ban of ${ofForm(form, 'about')}. Its requests are accepted again, unless another ban covers them.`,
  ],
  createLimitOverride(answer) {
    const { limit, value, tenant, requests, expiresAt, replaces } = z.parse(override, answer)
    return [
      `Set: ${value}${within(tenant, value)} has ${numberOf(requests)} requests of the limit ${limit}, ${until(expiresAt)}.`,
      ...(replaces
        ? [`This replaces ${numberOf(replaces.requests)} requests, ${until(replaces.expiresAt)}.`]
        : []),
    ]
  },
  deleteLimitOverride: (_, form) => [
    `Removed: the limit ${ofForm(form, 'about')}. The number of the policy applies again.`,
  ],
  resetLimit: (_, form) => [
    `Reset: the count of the limit ${ofForm(form, 'limit')} for ${ofForm(form, 'value')}.`,
  ],
  createApiKey(answer) {
    const { name, subject, expiresAt } = z.parse(key, answer)
    const end = expiresAt === null ? 'It does not expire.' : `It expires at ${at(expiresAt)}.`
    return [`Created: the API key ${name} of ${subject}. ${end}`]
  },
  rotateApiKey(_, form) {
    const seconds = Number(form.get('graceSeconds'))
    return [
      `Rotated: the secret of ${ofForm(form, 'about')}. ${
        seconds === 0
          ? 'The old secret is no longer valid.'
          : `The old secret is valid for ${numberOf(seconds)} more seconds.`
      }`,
    ]
  },
  expireApiKey(answer) {
    const { name, expiresAt } = z.parse(key, answer)
    return [
      expiresAt === null
        ? `Changed: the API key ${name} does not expire.`
        : `Changed: the API key ${name} expires at ${at(expiresAt)}.`,
    ]
  },
  planApiKey(answer) {
    const { name, plan } = z.parse(key, answer)
    return [
      plan === null
        ? `Changed: the API key ${name} has the plan of its subject, client or tenant.`
        : `Changed: the API key ${name} has the plan ${plan}.`,
    ]
  },
  disableApiKey: (_, form) => [
    `Disabled: the API key ${ofForm(form, 'about')}. None of its secrets is valid, and it cannot be restored.`,
  ],
  assignPlan(answer) {
    const { by, value, plan } = z.parse(assignment, answer)
    return [
      `Given: the plan ${plan}, to the ${by} ${value}. If it had another plan, that plan no longer applies.`,
    ]
  },
  removePlanAssignment: (_, form) => [
    `Removed: the plan of ${ofForm(form, 'about')}. The next plan that is found applies.`,
  ],
  writeRelation: (_, form) => [`Written: ${tupleOf(form)}.`],
  deleteRelation: (_, form) => [`Deleted: ${tupleOf(form)}.`],
  approveMcpTool: (_, form) => [
    `Approved: the new definition of ${ofForm(form, 'tool')} at ${ofForm(form, 'server')}.`,
  ],
  withdrawMcpApproval: (_, form) => [
    `Withdrawn: the approval of ${ofForm(form, 'tool')} at ${ofForm(form, 'server')}. Only the definition of the policy is approved.`,
  ],
  // Without the person, as the page that follows.
  createErasure: () => ['Ordered: the erasure of a person from the trail. Its state is below.'],
}

export const noticeOf = (
  action: string,
  answer: unknown,
  form: URLSearchParams,
  reason: string,
): readonly string[] => [...(WORDS[action]?.(answer, form) ?? []), `Reason: ${reason}`]
