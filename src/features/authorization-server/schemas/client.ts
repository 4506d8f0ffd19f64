/** OAuth clients as operators define them: in `CLIENTS`, and in the body of an API call. */
import type { JSONWebKeySet } from 'jose'
import * as z from 'zod/mini'
import { accessTokenSeconds } from '../../../validators/access-token.ts'
import { superRefine } from '../../../validators/checks.ts'
import {
  type Config,
  type Environment,
  type EnvironmentSchema,
  type FeatureVariables,
  readVariables,
} from '../../../validators/environment.ts'
import { octets, sortKeys } from '../../../validators/jwk.ts'
import { name, roleNames, scopeNames } from '../../../validators/names.ts'
import { converted, unique } from '../../../validators/schema-parts.ts'
import { SIGNING_ALGORITHMS } from '../../../validators/signing-jwk.ts'
import { json } from '../../../validators/variables.ts'

/** Grant types of the token endpoint (RFC 6749 sections 4.1, 4.4 and 6, RFC 7523, RFC 8693). */
export const GRANT_TYPES = [
  'client_credentials',
  'refresh_token',
  'urn:ietf:params:oauth:grant-type:token-exchange',
  'authorization_code',
  'urn:ietf:params:oauth:grant-type:jwt-bearer',
] as const

/** Signature algorithms of `private_key_jwt` assertions (RFC 7523), asymmetric only. */
export const ASSERTION_ALGORITHMS = ['ES256', 'Ed25519', 'EdDSA', 'RS256', 'PS256'] as const

/** Those of FAPI 2.0, section 5.4.1. */
export const FAPI_ALGORITHMS = ASSERTION_ALGORITHMS.filter((alg) => alg !== 'RS256')

/** Security profiles of the OpenID Foundation. */
export const PROFILES = ['fapi2'] as const
export type SecurityProfile = (typeof PROFILES)[number]

const SHA256_BYTES = 32

const keys = z.array(z.looseObject({ kty: z.string() })).check(z.minLength(1), z.maxLength(10))
const clientKeys = converted(
  z.strictObject({ keys }).check(
    // An unusable key that is silently ignored would make the client fail later.
    z.refine((set) => sortKeys(set, ASSERTION_ALGORITHMS)?.ignored.length === 0, {
      error: `must be public keys for ${ASSERTION_ALGORITHMS.join(', ')}, each with a kid that no other key for its algorithm has`,
    }),
  ),
  (set) => set as JSONWebKeySet,
)

export const clientMembers = {
  name: name(128),
  grants: z.array(z.enum(GRANT_TYPES)).check(z.minLength(1)),
  scopes: z.optional(
    scopeNames.check(z.minLength(1, 'must not be empty; omit it for no restriction')),
  ),
  roles: z.optional(roleNames),
  audiences: z.optional(z.array(name(2_048)).check(z.minLength(1), z.maxLength(20))),
  tenant: z.optional(name(256)),
  jwks: z.optional(clientKeys),
  tokenFormat: z.optional(z.enum(['jwt', 'opaque'])),
  tokenAlgorithm: z.optional(z.enum(SIGNING_ALGORITHMS)),
  accessTokenSeconds: z.optional(accessTokenSeconds),
  dpopBound: z.optional(z.boolean()),
  /** The security profile whose rules apply to the client. */
  profile: z.optional(z.enum(PROFILES)),
  /** Where users return to after `/oauth/authorize`. */
  redirectUris: z.optional(z.array(z.string()).check(z.minLength(1), z.maxLength(20))),
  /** Whether the client has no secret and no key (RFC 6749 section 2.1). */
  public: z.optional(z.boolean()),
}

/** What a client with a profile needs. */
export const profileAgreement = superRefine<Pick<ConfiguredClient, 'profile' | 'jwks'>>(
  ({ profile, jwks }, context) => {
    if (profile === undefined) return
    if (jwks === undefined) {
      const message = `${profile} needs jwks: its clients authenticate by private_key_jwt`
      context.addIssue({ path: ['profile'], message })
    } else if (!hasKeyForFapi(jwks)) context.addIssue({ path: ['jwks'], message: NO_FAPI_KEY })
  },
)

/** Reports whether an assertion that the profile allows can be verified by one of the keys. */
export const hasKeyForFapi = ({ keys }: JSONWebKeySet): boolean =>
  keys.some(({ alg }) => alg === undefined || FAPI_ALGORITHMS.some((each) => each === alg))

export const NO_FAPI_KEY = 'fapi2 needs a key for PS256, ES256 or Ed25519'

const configuredClient = z
  .strictObject({
    ...clientMembers,
    id: z.uuid('must be a UUID').check(z.toLowerCase()),
    name: z.optional(clientMembers.name),
    secretSha256: z.optional(
      octets.check(
        z.refine(({ length }) => length === SHA256_BYTES, 'must be the base64url of 32 bytes'),
      ),
    ),
  })
  .check(
    z.refine(
      (client) =>
        client.public === true ||
        (client.secretSha256 === undefined) !== (client.jwks === undefined),
      { error: 'requires exactly one of secretSha256 and jwks' },
    ),
    profileAgreement,
  )

export type ConfiguredClient = z.output<typeof configuredClient>

/** `CLIENTS`: clients that exist before an operator creates any. */
export const configuredClients = z
  .array(configuredClient, 'must be a list of clients: [{ "id": … }]')
  .check(unique('id', 'duplicate client id'))

export const clientVariables = {
  shape: {
    CLIENTS: z.optional(z.pipe(json, configuredClients)),
  },
  checks: [
    superRefine<Environment | undefined>((env, context) => {
      const { CLIENTS = [], SIGNING_KEYS } = env as WithClients
      // A client with an algorithm that no key supports could never get a token.
      for (const [index, { tokenAlgorithm }] of CLIENTS.entries()) {
        if (tokenAlgorithm === undefined) continue
        if (SIGNING_KEYS?.keys.some(({ alg }) => alg === tokenAlgorithm)) continue
        const path = ['CLIENTS', index, 'tokenAlgorithm']
        const message = 'must be the algorithm of a key in SIGNING_KEYS'
        context.addIssue({ code: 'custom', path, message })
      }
    }),
  ],
} satisfies FeatureVariables

type WithClients = Pick<z.output<EnvironmentSchema>, 'SIGNING_KEYS'> & {
  readonly CLIENTS?: readonly ConfiguredClient[]
}

export const clientsOf = (config: Pick<Config, 'variables'>): readonly ConfiguredClient[] =>
  readVariables(config, clientVariables).CLIENTS ?? []

const CLIENT_ID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/

/** Reports whether a text is a UUID in lower case. */
export function isClientId(text: string): boolean {
  return CLIENT_ID.test(text)
}
