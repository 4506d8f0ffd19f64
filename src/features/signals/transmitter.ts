/** The transmitters of a policy, prepared once for each isolate. */
import { createDiscovery } from '../../access/tokens/discovery.ts'
import type { KeySet } from '../../access/tokens/key-set.ts'
import { createRemoteKeySet, type RemoteKeySetOptions } from '../../access/tokens/remote-key-set.ts'
import { createKeySet } from '../../access/tokens/verifier.ts'
import { Misconfigured } from '../../errors.ts'
import { type Mistake, mistakeAt } from '../../problems/mistake.ts'
import {
  DEFAULT_ALGORITHMS,
  DEFAULT_CLOCK_TOLERANCE_SECONDS,
  type IssuerConfig,
} from '../../validators/issuer.ts'
import type { SignalAction } from './action.ts'
import { DEFAULT_MAX_AGE_SECONDS } from './definition.ts'
import { EVENT_NAMES, EVENT_TYPES, type EventName, eventNameOf } from './event-types.ts'
import { configurationUrlOf } from './metadata-url.ts'
import type { TransmitterInput } from './schema.ts'

export interface Transmitter {
  /** `iss` of its events. */
  readonly issuer: string
  readonly audiences: readonly string[]
  readonly keySet: KeySet
  readonly algorithms: readonly string[]
  /** Issuers whose subjects it may affect. */
  readonly subjectsOf: readonly string[]
  readonly actions: Readonly<Record<EventName, SignalAction>>
  readonly maxAgeSeconds: number
  readonly clockTolerance: number
  /** The value of `Authorization` that each push must have. Undefined: any. */
  readonly authorization: string | undefined
}

export interface TransmittersOptions {
  readonly definitions: readonly TransmitterInput[]
  /** The trusted issuers. */
  readonly issuers: readonly IssuerConfig[]
  /** The gateway, whose subjects may be named too. */
  readonly publicUrl: string
  readonly secrets: readonly {
    readonly issuer: string
    readonly authorization?: string | undefined
  }[]
  readonly watch: RemoteKeySetOptions['watch']
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Throws `Misconfigured` for issuers that are not trusted, and for secrets of other transmitters. */
export function createTransmitters(options: TransmittersOptions): readonly Transmitter[] {
  const { definitions, issuers, secrets } = options
  const ofPolicy = [...mistakesIn(options)]
  if (ofPolicy.length > 0) throw new Misconfigured('The policy', ofPolicy)
  const known = definitions.map(({ issuer }) => issuer)
  const unused = secrets.flatMap(({ issuer }, index): Mistake[] =>
    known.includes(issuer)
      ? []
      : [
          mistakeAt(
            'unused_setting',
            ['SIGNAL_TRANSMITTERS', index, 'issuer'],
            'must be the issuer of a transmitter of signals()',
            { given: issuer, known },
          ),
        ],
  )
  if (unused.length > 0) throw new Misconfigured('The environment', unused)
  return definitions.map((definition) => {
    const trusted = issuers.find(({ issuer }) => issuer === definition.issuer)
    return {
      issuer: definition.issuer,
      audiences: [definition.audience].flat(),
      keySet: createKeys(definition, trusted, options),
      algorithms: algorithmsOf(definition, trusted),
      subjectsOf: definition.subjectsOf ?? [definition.issuer],
      actions: actionsOf(definition.events),
      maxAgeSeconds: definition.maxAgeSeconds ?? DEFAULT_MAX_AGE_SECONDS,
      clockTolerance: trusted?.clockTolerance ?? DEFAULT_CLOCK_TOLERANCE_SECONDS,
      authorization: secrets.find(({ issuer }) => issuer === definition.issuer)?.authorization,
    }
  })
}

/** An event that effects nothing because of its issuer would be noticed too late. */
function* mistakesIn({ definitions, issuers, publicUrl }: TransmittersOptions): Generator<Mistake> {
  const known = [...issuers.map(({ issuer }) => issuer), publicUrl]
  for (const [index, { issuer, subjectsOf }] of definitions.entries()) {
    const path = ['signals', 'transmitters', index]
    if (subjectsOf === undefined && !known.includes(issuer))
      yield mistakeAt(
        'missing',
        [...path, 'subjectsOf'],
        'is missing: the transmitter is no issuer in ISSUERS; name the issuers whose subjects it may affect',
      )
    for (const [at, name] of (subjectsOf ?? []).entries())
      if (!known.includes(name))
        yield mistakeAt(
          'invalid_value',
          [...path, 'subjectsOf', at],
          'must be an issuer in ISSUERS',
          { given: name, known },
        )
  }
}

/** A shared secret would let each receiver write events for all others. */
function algorithmsOf(
  { algorithms }: TransmitterInput,
  trusted: IssuerConfig | undefined,
): IssuerConfig['algorithms'] {
  const all = algorithms ?? trusted?.algorithms ?? [...DEFAULT_ALGORITHMS]
  return all.filter((algorithm) => algorithm !== 'HS256')
}

function createKeys(
  definition: TransmitterInput,
  trusted: IssuerConfig | undefined,
  { watch, now }: TransmittersOptions,
): KeySet {
  const { issuer, jwksUri } = definition
  const algorithms = algorithmsOf(definition, trusted)
  if (jwksUri !== undefined) return createRemoteKeySet({ uri: jwksUri, algorithms, now, watch })
  if (trusted && trusted.keySet !== 'none')
    return createKeySet({ ...trusted, algorithms }, now, { watch })
  const locator = createDiscovery(issuer, 'jwks_uri', [configurationUrlOf(issuer)])
  return createRemoteKeySet({ uri: issuer, locator, algorithms, now, watch })
}

function actionsOf(events: TransmitterInput['events'] = {}): Record<EventName, SignalAction> {
  const isList = Array.isArray(events)
  const chosen = new Map<EventName | undefined, SignalAction | undefined>(
    isList
      ? events.map((type) => [
          eventNameOf(type),
          EVENT_TYPES[eventNameOf(type) ?? 'session-revoked'].action,
        ])
      : Object.entries(events).map(([type, action]) => [eventNameOf(type), action]),
  )
  const actions = EVENT_NAMES.map((name): [EventName, SignalAction] => [
    name,
    chosen.get(name) ?? (isList ? 'observe' : EVENT_TYPES[name].action),
  ])
  return Object.fromEntries(actions) as Record<EventName, SignalAction>
}
