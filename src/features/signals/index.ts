/** Shared signals: `import { signals } from 'portcullis/signals'`. */

import { eventWithoutRequest } from '../../audit/event.ts'
import { reasonOf } from '../../audit/reason.ts'
import { Denied } from '../../errors.ts'
import type { Contribution, Feature, FeatureParts } from '../../gateway/feature.ts'
import { longestLifeSeconds } from '../../gateway/longest-life.ts'
import type { WaitUntil } from '../../isolate/after-response.ts'
import { uuidV7 } from '../../isolate/random-ids.ts'
import { admit } from '../../middleware/admit.ts'
import { MAX_FIELD_CHARS } from '../../middleware/context.ts'
import type { PolicyLimit } from '../../policy/policy.ts'
import { parseConfiguration } from '../../validators/configuration.ts'
import { CONTACT_OBSERVER } from '../sign-in/contacts.ts'
import { createAccessToken } from './access-token.ts'
import {
  DEFAULT_MAX_AGE_SECONDS,
  DEFAULT_POLL_SECONDS,
  DEFAULT_REQUESTS_PER_MINUTE,
  type SignalsDefinition,
} from './definition.ts'
import { eventFields } from './event-fields.ts'
import { createPoll } from './poll.ts'
import { createReceiver, OUTCOMES, type Reception } from './receiver.ts'
import { createContactIndex } from './redis/contact-index.ts'
import { createSignalStore } from './redis/signal-store.ts'
import { SIGNAL_REFUSED } from './refused.ts'
import { signalOperations, signalRoutes } from './routes.ts'
import {
  signalsSchema,
  signalVariables,
  type TransmitterInput,
  transmitterSecretsOf,
} from './schema.ts'
import type { Contact } from './subject.ts'
import { createTransmitters } from './transmitter.ts'

export type { SignalAction } from './action.ts'
export type { SignalsDefinition, TransmitterDefinition } from './definition.ts'

const METRIC = 'portcullis_signals_total'
/** The label of an event whose transmitter is not known. */
const UNKNOWN = 'unknown'

/**
 * Returns the receiver of shared signals, for the policy's `features`: an identity provider reports that
 * a session was revoked or an account disabled, and the next request of that subject is refused at
 * every gateway. Events arrive at `POST /-/signals/events` (RFC 8935).
 *
 * A transmitter affects only subjects of its own issuer, or of those in `subjectsOf`. Throws
 * `Misconfigured` for a mistake in the definition.
 *
 * @example
 * ```ts
 * features: [
 *   signals({
 *     transmitters: [{ issuer: 'https://idp.example', audience: 'https://api.example' }],
 *   }),
 * ]
 * ```
 */
export function signals(definition: SignalsDefinition): Feature {
  const { transmitters, requestsPerMinute = DEFAULT_REQUESTS_PER_MINUTE } = parseConfiguration(
    'The policy',
    signalsSchema,
    definition,
    ['signals'],
  )
  const series = [...transmitters.map(({ issuer }) => issuer), UNKNOWN].flatMap((issuer) =>
    (issuer === UNKNOWN ? ['refused'] : [...OUTCOMES, 'refused']).map((outcome) => [
      issuer,
      outcome,
    ]),
  )
  return {
    name: 'signals',
    presence: 'less',
    settings: {
      requestsPerMinute,
      transmitters: Object.fromEntries(transmitters.map((each) => [each.issuer, each])),
    },
    effects: { requestsPerMinute: 'more', transmitters: 'less', 'transmitters.*': 'less' },
    variables: signalVariables,
    problems: { [SIGNAL_REFUSED.code]: SIGNAL_REFUSED },
    metrics: {
      [METRIC]: {
        kind: 'counter',
        labels: ['transmitter', 'outcome'],
        help: 'Security events by transmitter and by what became of them.',
        series,
      },
    },
    create: (parts) => createContribution(transmitters, requestsPerMinute, parts),
  }
}

function createContribution(
  definitions: readonly TransmitterInput[],
  requestsPerMinute: number,
  parts: FeatureParts,
): Contribution {
  const { config, policy, redis, admission, watch, now } = parts
  const { issuers, publicUrl } = config
  const secrets = transmitterSecretsOf(config)
  const transmitters = createTransmitters({ definitions, issuers, publicUrl, secrets, watch, now })
  const life = longestLifeSeconds(policy, config).access
  const store = createSignalStore({
    redis,
    cutoffLifeSeconds: life,
    eventLifeSeconds: Math.max(
      ...definitions.map(({ maxAgeSeconds }) => maxAgeSeconds ?? DEFAULT_MAX_AGE_SECONDS),
    ),
    now,
  })
  const limit: PolicyLimit = {
    name: 'signals',
    limit: requestsPerMinute,
    windowSeconds: 60,
    by: 'address',
    onUnavailable: 'deny',
  }
  const counters = new Map<string, (amount: number) => void>()
  function count(transmitter = UNKNOWN, outcome: string): void {
    const series = `${transmitter} ${outcome}`
    const add = counters.get(series) ?? parts.counter(METRIC, [transmitter, outcome])
    counters.set(series, add)
    add(1)
  }
  const contacts = createContactIndex({ redis, lifeSeconds: life, now })
  const named = new Set(transmitters.flatMap(({ subjectsOf }) => subjectsOf))
  CONTACT_OBSERVER.offer(parts, async ({ issuer, subject }, verified) => {
    if (!named.has(issuer)) return
    const { email, phone_number: phone } = verified
    const found: Contact[] = []
    if (email !== undefined) found.push({ kind: 'email', issuer, value: email })
    if (phone !== undefined) found.push({ kind: 'phone_number', issuer, value: phone })
    await contacts.add(found, subject)
  })
  const receiver = createReceiver({ transmitters, store, contacts, now })
  const app = signalRoutes({
    receiver,
    admitTransmitter: admit({ admission, limits: [limit], now }),
    limits: [limit],
    count,
  })
  return {
    apps: () => [{ at: '/', app }],
    operations: signalOperations,
    tasks: definitions.flatMap(({ issuer, poll }) => {
      if (poll === undefined) return []
      const { url, everySeconds = DEFAULT_POLL_SECONDS } = poll
      const own = secrets.find((each) => each.issuer === issuer) ?? {}
      return createPoll({
        transmitter: issuer,
        url,
        everySeconds,
        receiver,
        store,
        accessToken: createAccessToken(own, now),
        recorded: (outcome, waitUntil) => recordPolled(issuer, outcome, waitUntil),
        failed: ({ fault }) =>
          console.error(JSON.stringify({ incident: 'signal_poll_failed', issuer, fault })),
        now,
      })
    }),
  }

  /** An event that was not pushed has no request. */
  function recordPolled(issuer: string, outcome: Reception | Denied, waitUntil: WaitUntil): void {
    const isRefused = outcome instanceof Denied
    if (isRefused) count(issuer, 'refused')
    else for (const event of outcome.events) count(issuer, event.outcome)
    const nowMs = now()
    const id = uuidV7(nowMs)
    const fields = isRefused ? { 'signals.transmitter': issuer } : eventFields(outcome)
    const texts = Object.entries(fields).map(([name, text]) => [
      name,
      text.slice(0, MAX_FIELD_CHARS),
    ])
    void parts.auditSink.record(
      eventWithoutRequest(nowMs, {
        id,
        requestId: id,
        decision: isRefused ? 'deny' : 'allow',
        reason: reasonOf(isRefused ? outcome : undefined),
        fields: Object.fromEntries(texts),
      }),
      waitUntil,
    )
  }
}
