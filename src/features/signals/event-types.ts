/** The event types that transmitters send: their URIs, and what each does by default. */
import type { SignalAction } from './action.ts'

const CAEP = 'https://schemas.openid.net/secevent/caep/event-type/'
const RISC = 'https://schemas.openid.net/secevent/risc/event-type/'
const SSF = 'https://schemas.openid.net/secevent/ssf/event-type/'

/** A stream is working (SSF 1.0 section 8.1.4). */
export const VERIFICATION = `${SSF}verification`

type Payload = Readonly<Record<string, unknown>>

interface EventType {
  readonly uri: string
  readonly action: SignalAction
  /** Reports whether an event takes something away from its subject. Others are only observed. Default: all do. */
  readonly narrows?: (payload: Payload) => boolean
}

/** CAEP 1.0 section 3, and RISC 1.0 section 2. */
export const EVENT_TYPES = {
  'session-revoked': { uri: `${CAEP}session-revoked`, action: 'revokeSessions' },
  'credential-change': {
    uri: `${CAEP}credential-change`,
    action: 'revokeSessions',
    // A new factor, such as a second security key, weakens nothing.
    narrows: ({ change_type: change }) => change !== 'create',
  },
  'token-claims-change': { uri: `${CAEP}token-claims-change`, action: 'cutoff' },
  'assurance-level-change': {
    uri: `${CAEP}assurance-level-change`,
    action: 'stepUp',
    narrows: ({ change_direction: direction }) => direction !== 'increase',
  },
  'device-compliance-change': {
    uri: `${CAEP}device-compliance-change`,
    action: 'revokeSessions',
    narrows: ({ current_status: status }) => status !== 'compliant',
  },
  'account-disabled': { uri: `${RISC}account-disabled`, action: 'ban' },
  'account-enabled': { uri: `${RISC}account-enabled`, action: 'liftBan' },
  'account-purged': { uri: `${RISC}account-purged`, action: 'ban' },
  'credential-compromise': { uri: `${RISC}credential-compromise`, action: 'cutoff' },
  'sessions-revoked': { uri: `${RISC}sessions-revoked`, action: 'revokeSessions' },
} as const satisfies Readonly<Record<string, EventType>>

export type EventName = keyof typeof EVENT_TYPES

const TABLE: Readonly<Record<EventName, EventType>> = EVENT_TYPES

export const EVENT_NAMES = Object.keys(EVENT_TYPES) as EventName[]

/** The URIs of all known types. */
export const EVENT_URIS: readonly string[] = EVENT_NAMES.map((name) => TABLE[name].uri)

const NAMES = new Map<string, EventName>(EVENT_NAMES.map((name) => [TABLE[name].uri, name]))

/** Returns the name of an event type, from its name or its URI. Undefined: it is not known. */
export function eventNameOf(type: string): EventName | undefined {
  return NAMES.get(type) ?? EVENT_NAMES.find((name) => name === type)
}

/** Reports whether an event takes something away from its subject, or gives it back. */
export const narrows = (name: EventName, payload: Payload): boolean =>
  TABLE[name].narrows?.(payload) ?? true
