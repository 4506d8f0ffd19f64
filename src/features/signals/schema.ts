/** Schemas of `signals()`: its options, and its variable. */
import * as z from 'zod/mini'
import { superRefine } from '../../validators/checks.ts'
import { type Config, type FeatureVariables, readVariables } from '../../validators/environment.ts'
import { ALGORITHMS } from '../../validators/jwk.ts'
import { issuerName } from '../../validators/names.ts'
import {
  nonEmpty,
  requestedScope,
  text,
  unique,
  wholeNumber,
} from '../../validators/schema-parts.ts'
import { json, privateUrl } from '../../validators/variables.ts'
import { SIGNAL_ACTIONS } from './action.ts'
import { EVENT_NAMES, eventNameOf } from './event-types.ts'

const MAX_TRANSMITTERS = 16
const MAX_ISSUERS = 16
const MAX_AGE_SECONDS = 2_592_000

const audience = z.union([text(2_048), z.array(text(2_048)).check(z.minLength(1))], {
  error: ({ input }) => (input === undefined ? 'is missing' : 'must be a name, or a list of names'),
})

/** The action of each event type, or a list of types. A type has its short name or its URI. */
const events = z
  .union([z.array(z.string()), z.record(z.string(), z.enum(SIGNAL_ACTIONS))], {
    error: `must be a list of event types, or an object from event types to actions: ${SIGNAL_ACTIONS.join(', ')}`,
  })
  .check(
    superRefine((value, context) => {
      const entries = Array.isArray(value)
        ? value.map((type) => [type, undefined])
        : Object.entries(value)
      for (const [type = '', action] of entries) {
        const name = eventNameOf(type)
        const path = Array.isArray(value) ? [value.indexOf(type)] : [type]
        if (name === undefined) {
          const message = `unknown event type; use one of ${EVENT_NAMES.join(', ')}`
          context.addIssue({ code: 'custom', path, message })
        } else if (action === 'liftBan' && name !== 'account-enabled') {
          context.addIssue({
            code: 'custom',
            path,
            message: 'only account-enabled may have liftBan',
          })
        } else if (
          name === 'account-enabled' &&
          action !== undefined &&
          !ENABLED.includes(action)
        ) {
          const message = 'account-enabled must have liftBan or observe'
          context.addIssue({ code: 'custom', path, message })
        }
      }
    }),
  )
const ENABLED: readonly string[] = ['liftBan', 'observe']

const transmitter = z.strictObject({
  issuer: issuerName,
  audience,
  events: z.optional(events),
  subjectsOf: z.optional(z.array(issuerName).check(z.minLength(1), z.maxLength(MAX_ISSUERS))),
  jwksUri: z.optional(privateUrl),
  algorithms: z.optional(
    // A shared secret would let the receiver forge events.
    z.array(z.enum(ALGORITHMS.filter((name) => name !== 'HS256'))).check(z.minLength(1)),
  ),
  maxAgeSeconds: z.optional(wholeNumber(60, MAX_AGE_SECONDS)),
  poll: z.optional(
    z.strictObject({
      url: privateUrl,
      everySeconds: z.optional(wholeNumber(5, 3_600)),
    }),
  ),
})

export const signalsSchema = z.strictObject({
  transmitters: z
    .array(transmitter)
    .check(
      z.minLength(1),
      z.maxLength(MAX_TRANSMITTERS),
      unique('issuer', 'duplicate transmitter'),
    ),
  requestsPerMinute: z.optional(wholeNumber(1, 1_000_000)),
})

export type TransmitterInput = z.output<typeof transmitter>

/** What the gateway and a transmitter share. */
const transmitterSecrets = z.strictObject({
  /** `issuer` of a transmitter of the policy. */
  issuer: nonEmpty,
  /** The value of `Authorization` that each push must have. Default: any. */
  authorization: z.optional(text(4_096)),
  /** The access token for polls. */
  accessToken: z.optional(text(16_384)),
  /** Gets access tokens for polls (RFC 6749 section 4.4). */
  client: z.optional(
    z.strictObject({
      id: text(512),
      secret: text(1_024),
      tokenEndpoint: privateUrl,
      scope: z.optional(requestedScope()),
    }),
  ),
})

export type TransmitterSecrets = z.output<typeof transmitterSecrets>

export const signalVariables = {
  shape: {
    SIGNAL_TRANSMITTERS: z.optional(
      z.pipe(json, z.array(transmitterSecrets).check(unique('issuer', 'duplicate issuer'))),
    ),
  },
} satisfies FeatureVariables

/** Returns the entries of a variable's text. Undefined: it is not valid. */
export const parseSecrets = (text: string): readonly TransmitterSecrets[] | undefined =>
  z.safeParse(signalVariables.shape.SIGNAL_TRANSMITTERS, text).data

/** Contains secrets. */
export const transmitterSecretsOf = (config: Pick<Config, 'variables'>) =>
  readVariables(config, signalVariables).SIGNAL_TRANSMITTERS ?? []
