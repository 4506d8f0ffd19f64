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
}

/** A limit of the policy, and what it was for the caller. */
export interface LimitOfCaller {
  readonly rule: PolicyLimit
  readonly was: number
}

interface LimitPage {
  readonly limits: readonly PolicyLimit[]
  readonly overrides: readonly Override[]
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

/** Returns the limit of a caller before a change. Undefined: it cannot be read, or the policy does not have it. */
export async function readLimit(
  gateway: Gateway,
  limit: string,
  value: string,
): Promise<LimitOfCaller | undefined> {
  const page = await optional(gateway.get<LimitPage>('/limits', { limit: '200' }))
  const rule = page?.limits.find(({ name }) => name === limit)
  if (page === undefined || rule === undefined) return undefined
  const own = page.overrides.find((one) => one.limit === limit && one.value === value)
  return { rule, was: own?.requests ?? rule.limit }
}

/** Returns the kind of the caller, and a space. */
export const kindOf = (limit: LimitOfCaller | undefined): string =>
  limit === undefined || limit.rule.by === 'custom' ? '' : `${limit.rule.by} `

const windowOf = ({ windowSeconds }: PolicyLimit): string =>
  windowSeconds === 60 ? 'minute' : windowSeconds === 3_600 ? 'hour' : duration(windowSeconds)

/** Returns whose limit it is, and what it was: `subject acme of limit standard: 200 per minute until it is lifted (was 100)`. */
export function overrideInWords(override: Override, limit: LimitOfCaller): string {
  const { value, tenant, requests, expiresAt } = override
  const within = tenant && limit.rule.by !== 'tenant' ? ` in tenant ${visible(tenant)}` : ''
  return (
    `${kindOf(limit)}${visible(value)}${within} of limit ${visible(limit.rule.name)}: ` +
    `${requests} per ${windowOf(limit.rule)} until ${expiresAt ?? 'it is lifted'} (was ${limit.was})`
  )
}

/**
 * Returns a warning if the audit trail has no caller of this kind with the value: the value may be of another kind.
 * Undefined: it has one, or it cannot be searched.
 */
export async function otherKindOf(
  gateway: Gateway,
  { by, name }: PolicyLimit,
  value: string,
): Promise<string | undefined> {
  if (!KINDS.includes(by)) return undefined
  const isSeen = async (kind: string) => {
    const query = { [kind]: value, limit: '1' }
    const page = await optional(
      gateway.get<{ readonly events: readonly unknown[] }>('/audit', query),
    )
    return page && page.events.length > 0
  }
  if ((await isSeen(by)) !== false) return undefined
  const others = KINDS.filter((kind) => kind !== by && kind !== 'address' && kind !== 'key')
  const seen = await Promise.all(others.map(isSeen))
  const found = others.filter((_, at) => seen[at] === true)
  const text = `The audit trail has no ${by} ${value}, and limit ${name} counts by ${by}.`
  return found.length === 0
    ? `${text} Check the value.`
    : `${text} There is a ${found.join(' and a ')} of this name: use a limit that counts by ${found.join(' or ')}, see \`portcullis limits list\`.`
}
