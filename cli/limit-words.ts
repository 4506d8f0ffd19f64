/** Whose limit an override sets, in words, and a warning if the caller looks like one of another kind. */
import { Failure } from './failure.ts'
import type { Gateway } from './gateway.ts'
import { duration, visible } from './text.ts'

export interface PolicyLimit {
  readonly name: string
  readonly limit: number
  readonly windowSeconds: number
  /** The kind of caller that it counts. */
  readonly by: string
  /** Units that an isolate leases in advance. */
  readonly lease?: { readonly max: number; readonly ttlMs: number } | null
}

export interface Override {
  readonly limit: string
  readonly value: string
  readonly tenant?: string | null
  readonly requests: number
  readonly expiresAt: string | null
  /** The override before. Null: none. Absent: not known, or a gateway of an earlier version. */
  readonly replaces?: { readonly requests: number } | null
}

/** The kinds of callers that the audit trail can be searched for. */
const KINDS = ['subject', 'client', 'tenant', 'address', 'key']

/** Returns the answer of a call that only adds to an answer. Undefined: it failed, such as for a missing permission. */
async function optional<Answer>(answer: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof Failure) return undefined
    throw error
  }
}

/** Returns a limit of the policy. Undefined: it cannot be read. */
export async function readLimit(gateway: Gateway, limit: string): Promise<PolicyLimit | undefined> {
  // The first page has all limits of the policy.
  const page = await optional(
    gateway.get<{ readonly limits: readonly PolicyLimit[] }>('/limits', { limit: '1' }),
  )
  return page?.limits.find(({ name }) => name === limit)
}

/** Returns the kind of the caller, and a space. */
export const kindOf = (rule: PolicyLimit | undefined): string =>
  rule === undefined || rule.by === 'custom' ? '' : `${rule.by} `

const windowOf = ({ windowSeconds }: PolicyLimit): string =>
  windowSeconds === 60 ? 'minute' : windowSeconds === 3_600 ? 'hour' : duration(windowSeconds)

/** Returns whose limit it is, and which override it replaces: `subject acme of limit standard: 200 per minute until it is lifted (was 100)`. */
export function overrideInWords(override: Override, rule: PolicyLimit): string {
  const { value, tenant, requests, expiresAt, replaces } = override
  const within = tenant && rule.by !== 'tenant' ? ` in tenant ${visible(tenant)}` : ''
  return (
    `${kindOf(rule)}${visible(value)}${within} of limit ${visible(rule.name)}: ` +
    `${requests} per ${windowOf(rule)} until ${expiresAt ?? 'it is lifted'}` +
    (replaces ? ` (was ${replaces.requests})` : '')
  )
}

/**
 * Returns a warning if the audit trail has no caller of this kind with the value: the value may be of another kind.
 * Undefined: it has one, or it cannot be searched to its end with one call.
 */
export async function otherKindOf(
  gateway: Gateway,
  { by, name }: PolicyLimit,
  value: string,
): Promise<string | undefined> {
  if (!KINDS.includes(by)) return undefined
  const page = await optional(
    gateway.get<{ readonly events: readonly unknown[]; readonly cursor?: string }>('/audit', {
      [by]: value,
      limit: '1',
    }),
  )
  if (page === undefined || page.events.length > 0 || page.cursor !== undefined) return undefined
  return (
    `The audit trail has no ${by} ${value}, and limit ${name} counts by ${by}. Check the value. ` +
    '`portcullis limits list` shows what each limit counts by.'
  )
}
