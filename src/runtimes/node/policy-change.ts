/** The audit event of a policy that replaced another one while the server ran. */
import { type AuditEvent, eventWithoutRequest } from '../../audit/event.ts'
import { uuidV7 } from '../../isolate/random-ids.ts'

/** What is known about a policy that replaces another one. */
export interface PolicyChange {
  /** The SHA-256 of its files, in hexadecimal digits. Default: it is not known. */
  readonly digest?: string | undefined
  /** Who or what asked for the change, such as `SIGHUP`. The console shows it. Default `reload`. */
  readonly by?: string | undefined
  /** What changes, in words, such as the lines of `portcullis policy diff`. Default: it is not known. */
  readonly changes?: readonly string[] | undefined
  /** False: another process of the same server records the change. Default true. */
  readonly audited?: boolean | undefined
}

/** With the other fields, an event has at most 16. */
const MAX_CHANGES = 12
const MAX_FIELD_CHARS = 256

/** Returns the event. `before` is the digest of the policy that was replaced. */
export function policyChanged(
  nowMs: number,
  before: string | undefined,
  { digest, by = 'reload', changes }: PolicyChange,
): AuditEvent {
  const id = uuidV7(nowMs)
  const listed = changes?.slice(0, MAX_CHANGES) ?? []
  const fields = [
    ['policy.by', by],
    ...(before === undefined ? [] : [['policy.before', before]]),
    ...(changes === undefined ? [] : [['policy.changes', String(changes.length)]]),
    ...listed.map((text, index) => [`policy.change.${index + 1}`, text]),
  ]
  return eventWithoutRequest(nowMs, {
    id,
    requestId: id,
    decision: 'allow',
    reason: 'policy_changed',
    change: { action: 'policy.changed', target: digest ?? 'unknown' },
    fields: Object.fromEntries(
      fields.map(([name = '', text = '']) => [name, text.slice(0, MAX_FIELD_CHARS)]),
    ),
  })
}
