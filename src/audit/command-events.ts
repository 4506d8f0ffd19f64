/** Groups the events of one command of an operator, for lists that people read. */
import type { AuditEvent } from './event.ts'

const ADMIN = '/-/admin'
/** Routes that a command requests before its calls. */
const PREPARATION: ReadonlySet<string> = new Set([
  '/oauth/token',
  '/.well-known/oauth-authorization-server',
])

export type CommandEvent = Pick<
  AuditEvent,
  'id' | 'traceId' | 'route' | 'decision' | 'address' | 'observed' | 'change'
> & {
  readonly actor: Pick<AuditEvent['actor'], 'issuer' | 'subject' | 'client'>
}

export interface CommandGroup<Event> {
  readonly event: Event
  /** The number of further events of the command. */
  readonly others: number
}

/**
 * Leaves out the events that are only a part of a listed command: the requests of one trace by the same caller and address. The
 * command line sends one trace id with all requests of a command. A caller can choose a trace id, so a change, a refusal, a failure,
 * and a call that observed rules would refuse are always listed. So are the calls of another caller, or from another address: a
 * stolen token does not hide behind a command of its operator. Each listed event has the number of those that it replaces.
 */
export function groupCommands<Event extends CommandEvent>(
  events: readonly Event[],
): readonly CommandGroup<Event>[] {
  const shownBy = new Map<string, Event>()
  for (const event of events) {
    const key = callKey(event)
    if (key === undefined) continue
    const shown = shownBy.get(key)
    if (shown === undefined || (!isKept(shown) && isKept(event))) shownBy.set(key, event)
  }
  const ofTrace = new Map<string, Event>()
  for (const event of shownBy.values())
    ofTrace.set(traceKey(event), event).set(traceKey(event, null), event)
  const others = new Map<Event, number>()
  const listed = events.filter((event) => {
    const key = callKey(event)
    const isPreparation = PREPARATION.has(event.route ?? '')
    const of = key !== undefined ? shownBy.get(key) : isPreparation && ofTrace.get(traceKey(event))
    if (!of || of === event || isKept(event)) return true
    others.set(of, (others.get(of) ?? 0) + 1)
    return false
  })
  return listed.map((event) => ({ event, others: others.get(event) ?? 0 }))
}

/** Identifies the command of an operator's call. Undefined: the event is not such a call. */
function callKey(event: CommandEvent): string | undefined {
  const { traceId, route, actor, address } = event
  if (!traceId || /^0*$/.test(traceId) || !route?.startsWith(`${ADMIN}/`)) return undefined
  return JSON.stringify([traceId, address, actor.issuer, actor.subject, actor.client])
}

/** The client of a token, or null for the metadata, which is read without a credential. */
const traceKey = ({ traceId, address, actor }: CommandEvent, client = actor.client) =>
  JSON.stringify([traceId, address, client])

const isKept = ({ decision, change, observed }: CommandEvent) =>
  decision !== 'allow' || change !== undefined || observed !== undefined
