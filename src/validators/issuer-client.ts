/** `ISSUER_CLIENTS`: the gateway as a client of issuers. */
import * as z from 'zod/mini'
import { superRefine } from './checks.ts'
import {
  type Config,
  type Environment,
  type EnvironmentSchema,
  type FeatureVariables,
  readVariables,
} from './environment.ts'
import type { CalledIssuer } from './introspection.ts'
import { nonEmpty, text, trimmed, unique } from './schema-parts.ts'
import { soundJwk } from './signing-jwk.ts'
import { json } from './variables.ts'

const client = {
  /** An issuer in `ISSUERS`. */
  issuer: trimmed,
  id: text(512),
  /** Users sign in with it. `signIn()` checks it. */
  signIn: z.optional(z.unknown()),
}
const SECRET_METHODS = ['client_secret_basic', 'client_secret_post'] as const

/** A client with a secret (RFC 6749 section 2.3.1), or with a key (RFC 7523). */
const issuerClient = z.union(
  [
    z.strictObject({
      ...client,
      secret: text(1_024),
      method: z._default(z.enum(SECRET_METHODS), 'client_secret_basic'),
    }),
    z.strictObject({
      ...client,
      key: soundJwk,
      /** `aud` of its assertions. Default: the issuer. */
      audience: z.optional(nonEmpty),
    }),
  ],
  'must be { "issuer", "id", "secret" } or { "issuer", "id", "key" }, with valid values',
)

export type IssuerClient = z.output<typeof issuerClient>

export const issuerClients = z.array(issuerClient).check(unique('issuer', 'duplicate issuer'))

export const issuerClientVariables = {
  shape: {
    ISSUER_CLIENTS: z.optional(z.pipe(json, issuerClients)),
  },
  checks: [
    superRefine<Environment | undefined>((env, context) => {
      const { ISSUERS = [], ISSUER_CLIENTS = [] } = env as WithIssuerClients
      for (const mistake of mistakesInClients(ISSUERS, ISSUER_CLIENTS)) context.addIssue(mistake)
    }),
  ],
} satisfies FeatureVariables

type WithIssuerClients = Pick<z.output<EnvironmentSchema>, 'ISSUERS'> & {
  readonly ISSUER_CLIENTS?: readonly IssuerClient[]
}

/** Returns the gateway as a client of issuers. Contains secrets. */
export const issuerClientsOf = (config: Pick<Config, 'variables'>): readonly IssuerClient[] =>
  readVariables(config, issuerClientVariables).ISSUER_CLIENTS ?? []

/** Yields the mistakes of issuers without a client, and of clients without an issuer. */
function* mistakesInClients(
  issuers: readonly (CalledIssuer & { readonly issuer: string })[],
  clients: readonly IssuerClient[],
) {
  for (const [index, { issuer, introspection }] of issuers.entries()) {
    if (introspection === undefined || clients.some((client) => client.issuer === issuer)) continue
    const path = ['ISSUERS', index, 'introspection']
    yield { path, message: 'requires a client of the gateway for this issuer in ISSUER_CLIENTS' }
  }
  for (const [index, { issuer, signIn }] of clients.entries()) {
    const of = issuers.find((one) => one.issuer === issuer)
    if (of !== undefined && (of.introspection ?? signIn) !== undefined) continue
    const path = ['ISSUER_CLIENTS', index, 'issuer']
    yield { path, message: 'must be an issuer with introspection or signIn in ISSUERS' }
  }
}
