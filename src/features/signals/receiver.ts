/** Receives security events: verifies them, decides their effects, and applies these once. */
import type { WaitUntil } from '../../isolate/after-response.ts'
import type { SignalAction } from './action.ts'
import type { ContactIndex } from './contact-index.ts'
import { effectsOf, type SignalEffect } from './effects.ts'
import { eventNameOf, narrows, VERIFICATION } from './event-types.ts'
import { type SecurityEvent, type SignalledEvent, verifySecurityEvent } from './security-event.ts'
import type { Applied, SignalStore } from './signal-store.ts'
import { type Named, type SubjectMistake, subjectIn } from './subject.ts'
import type { Transmitter } from './transmitter.ts'

/**
 * What became of an event.
 *
 * - `applied`: its effects are in force.
 * - `duplicate`: it was applied before.
 * - `stale`: a later event about the account was applied before.
 * - `observed`: the policy, or the event itself, demands no effect.
 * - `ignored`: its type is not known.
 * - `verified`: it only shows that the stream works.
 * - `unknown_subject`: no user with this e-mail address or phone number has signed in.
 * - `foreign_subject`, `unsupported_subject`: it is about no subject of this transmitter.
 */
export const OUTCOMES = [
  'applied',
  'duplicate',
  'stale',
  'observed',
  'ignored',
  'verified',
  'unknown_subject',
  'foreign_subject',
  'unsupported_subject',
] as const
export type SignalOutcome = (typeof OUTCOMES)[number]

export interface ReceivedEvent {
  readonly type: string
  readonly action: SignalAction | undefined
  readonly outcome: SignalOutcome
}

export interface Reception {
  readonly transmitter: string
  readonly id: string
  readonly events: readonly ReceivedEvent[]
}

export type Receiver = ReturnType<typeof createReceiver>

export interface ReceiverOptions {
  readonly transmitters: readonly Transmitter[]
  readonly store: Pick<SignalStore, 'apply'>
  readonly contacts: Pick<ContactIndex, 'find' | 'forget'>
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Of clocks and retries. */
const MARGIN_SECONDS = 60

export function createReceiver(options: ReceiverOptions) {
  const { transmitters, store, contacts, now } = options

  async function planOf(
    { type, payload, subject, atSeconds }: SignalledEvent,
    transmitter: Transmitter,
  ): Promise<Plan> {
    const none = { type, action: undefined, effects: [], purged: [] }
    if (type === VERIFICATION) return { ...none, outcome: 'verified' }
    const name = type.includes(':') ? eventNameOf(type) : undefined
    if (name === undefined) return { ...none, outcome: 'ignored' }
    const action = narrows(name, payload) ? transmitter.actions[name] : 'observe'
    const named = subjectIn(subject, transmitter)
    if (typeof named === 'string') return { ...none, action, outcome: MISTAKES[named] }
    if (action === 'observe') return { ...none, action, outcome: 'observed' }
    const found = await contacts.find(named.contacts)
    const users = [
      ...named.users,
      ...found.map(({ issuer, subject: value }): Named => ({ kind: 'subject', issuer, value })),
    ]
    return {
      type,
      action,
      effects: effectsOf(action, { ...named, users }, atSeconds),
      purged: name === 'account-purged' ? users : [],
      outcome: named.contacts.length > 0 ? 'unknown_subject' : 'unsupported_subject',
    }
  }

  return {
    /**
     * Receives a token. When it resolves, the effects are in force everywhere. Throws `Denied`
     * (`signal_refused`) and `Unavailable`; nothing has changed then, or all of it: the transmitter may
     * send the token again.
     */
    async receive(
      text: string,
      isAllowed: (transmitter: Transmitter) => Promise<void>,
      waitUntil?: WaitUntil,
    ): Promise<Reception> {
      const nowSeconds = Math.floor(now() / 1000)
      const event = await verifySecurityEvent(text, transmitters, isAllowed, nowSeconds, waitUntil)
      const { transmitter, id, events } = event
      const plans = await Promise.all(events.map((each) => planOf(each, transmitter)))
      const effects = plans.flatMap((plan) => plan.effects)
      const applied =
        effects.length === 0
          ? NOTHING
          : await store.apply({
              transmitter: transmitter.issuer,
              id,
              lifeSeconds: lifeOf(event, nowSeconds),
              cutoffSeconds: cutoffOf(event, nowSeconds),
              effects,
            })
      const kept = effects.filter((_, at) => applied.outcomes[at] === 'stale')
      const isKept = ({ issuer, value }: Named) =>
        kept.some((of) => of.kind === 'ban' && of.issuer === issuer && of.subject === value)
      // Last, because an event that is sent again must find them.
      await contacts.forget(
        plans
          .flatMap(({ purged }) => purged.filter((user) => !isKept(user)))
          .map(({ issuer, value }) => ({ issuer, subject: value })),
      )
      return { transmitter: transmitter.issuer, id, events: conclude(plans, applied) }
    },
  }
}

interface Plan extends Omit<ReceivedEvent, 'outcome'> {
  readonly effects: readonly SignalEffect[]
  /** Users whose account no longer exists. */
  readonly purged: readonly Named[]
  /** Of an event without effects. */
  readonly outcome: SignalOutcome
}

const NOTHING: Applied = { isRepeated: false, outcomes: [] }

const MISTAKES: Readonly<Record<SubjectMistake, SignalOutcome>> = {
  foreign: 'foreign_subject',
  unsupported: 'unsupported_subject',
}

/** The event is remembered until it is too old to be accepted. */
const lifeOf = ({ transmitter, issuedAtSeconds }: SecurityEvent, nowSeconds: number): number =>
  Math.ceil(
    Math.max(0, issuedAtSeconds - nowSeconds) +
      transmitter.maxAgeSeconds +
      2 * transmitter.clockTolerance +
      MARGIN_SECONDS,
  )

/**
 * Everything issued before the event arrived is refused, also by a transmitter whose clock, which is
 * often the clock of the token issuer, is ahead.
 */
const cutoffOf = ({ issuedAtSeconds }: SecurityEvent, nowSeconds: number): number =>
  Math.max(nowSeconds, Math.floor(issuedAtSeconds))

/** Assigns the outcomes of the effects to their events. */
function conclude(
  plans: readonly Plan[],
  { isRepeated, outcomes }: Applied,
): readonly ReceivedEvent[] {
  let at = 0
  return plans.map(({ type, action, effects, outcome }) => {
    const own = outcomes.slice(at, at + effects.length)
    at += effects.length
    if (effects.length === 0) return { type, action, outcome }
    if (isRepeated) return { type, action, outcome: 'duplicate' }
    return { type, action, outcome: own.includes('stale') ? 'stale' : 'applied' }
  })
}
