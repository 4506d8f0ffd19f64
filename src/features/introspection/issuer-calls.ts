/** Selects the issuer that verifies a token by a call. */

import { createDiscovery, type Locator, type MetadataUri } from '../../access/tokens/discovery.ts'
import { issuerRules } from '../../access/tokens/issuer-rules.ts'
import { MAX_TOKEN_BYTES } from '../../access/tokens/jws.ts'
import type { IssuerCall, IssuerCalls } from '../../access/tokens/verifier.ts'
import { Misconfigured } from '../../errors.ts'
import type { Breakers } from '../../isolate/breakers.ts'
import { mistakeAt } from '../../problems/mistake.ts'
import { callOf } from '../../validators/introspection.ts'
import type { IssuerConfig } from '../../validators/issuer.ts'
import type { IssuerClient } from '../../validators/issuer-client.ts'
import { createIssuerCall, type IssuerCallOptions } from './issuer-call.ts'
import { introspectionRequest, userinfoRequest } from './requests.ts'

export interface IssuerCallsOptions {
  readonly issuers: readonly IssuerConfig[]
  /** One for each issuer with introspection. */
  readonly clients: readonly IssuerClient[]
  readonly watch: Breakers['watch']
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** RFC 6750 section 2.1. */
const BEARER_TOKEN = /^[\w.~+/-]+=*$/

/**
 * Creates the calls of all issuers with `introspection` or `userinfo`. A JWT goes to the issuer that
 * it names, and an opaque token to the issuer with its prefix. `ISSUERS` does not permit two issuers
 * for one opaque token.
 */
export function createIssuerCalls({
  issuers,
  clients,
  watch,
  now,
}: IssuerCallsOptions): IssuerCalls {
  const prefixes: { readonly prefix: string; readonly issuer: string }[] = []
  const calls = { opaque: new Map<string, IssuerCall>(), jwt: new Map<string, IssuerCall>() }
  for (const config of issuers) {
    const settings = callOf(config)
    if (settings === undefined) continue
    const { issuer } = config
    const { endpoint, form, tokenPrefix = '', maxAgeSeconds } = settings
    const { member, ...kind } = selectKind(config, clients, now)
    const call = createIssuerCall({
      ...kind,
      rules: issuerRules(config),
      locator: endpoint === undefined ? createDiscovery(issuer, member) : locatorOf(endpoint),
      maxAgeSeconds,
      watch,
      now,
    })
    calls[form].set(issuer, call)
    if (form === 'opaque') prefixes.push({ prefix: tokenPrefix, issuer })
  }
  return {
    opaqueIssuerOf(text) {
      if (text.length > MAX_TOKEN_BYTES || !BEARER_TOKEN.test(text)) return undefined
      return prefixes.find(({ prefix }) => text.startsWith(prefix))?.issuer
    },
    callTo: (issuer, form) => calls[form].get(issuer),
  }
}

type CallKind = Pick<IssuerCallOptions, 'request' | 'audience'> & { readonly member: MetadataUri }

function selectKind(
  { issuer, introspection, audience }: IssuerConfig,
  clients: readonly IssuerClient[],
  now: () => number,
): CallKind {
  if (introspection === undefined)
    return {
      member: 'userinfo_endpoint',
      request: userinfoRequest,
      audience: [audience].flat(),
    }
  const client = clients.find((one) => one.issuer === issuer)
  if (client === undefined)
    throw new Misconfigured('The environment', [
      mistakeAt('missing', ['ISSUER_CLIENTS'], `has no client for ${issuer}`),
    ])
  return { member: 'introspection_endpoint', request: introspectionRequest(client, now) }
}

const locatorOf = (uri: string): Locator => ({ locate: async () => uri })
