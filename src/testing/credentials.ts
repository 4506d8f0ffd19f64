/** The credentials of tested requests: tokens of the trusted issuers, API keys, and DPoP proofs. */
import { decodeJwt } from 'jose'
import { type PlanParty, planRecordOf } from '../access/admission/plan-record.ts'
import { newApiKey } from '../access/tokens/api-key.ts'
import { credentialHash } from '../access/tokens/reference.ts'
import { DEFAULT_KEYS } from '../redis/keys.ts'
import type { Issuer } from './issuer.ts'
import type { MemoryStore } from './memory-store.ts'
import { createProver, type Prover } from './prover.ts'
import type { Caller, TestedApiKey, TestedPlan, TestedRequest } from './tested-request.ts'

export interface CredentialsOptions {
  /** Identifiers of the trusted issuers. */
  readonly names: readonly [string, ...string[]]
  readonly issuers: () => Promise<ReadonlyMap<string, Issuer>>
  /** The present stores. */
  readonly store: () => MemoryStore
  /** The URL of the gateway, which issues the API keys. */
  readonly publicUrl: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Creates what signs tokens and stores API keys. Equal callers have the same token. */
export function createCredentials({ names, issuers, store, publicUrl, now }: CredentialsOptions) {
  const tokens = new Map<string, { readonly token: string; readonly endMs: number }>()
  const apiKeys = new Map<string, Promise<string>>()
  let proving: Promise<Prover> | undefined

  function prover(): Promise<Prover> {
    proving ??= createProver()
    return proving
  }

  async function signToken({ issuer: name = names[0], ...claims }: Caller): Promise<string> {
    const issuer = (await issuers()).get(name)
    if (issuer === undefined)
      throw new TypeError(`request: ${name} is not in the \`issuers\` of the tester`)
    const key = JSON.stringify([name, claims])
    const known = tokens.get(key)
    if (known !== undefined && now() < known.endMs) return known.token
    const token = await issuer.token(claims)
    tokens.set(key, { token, endMs: (decodeJwt(token).exp ?? 0) * 1000 })
    return token
  }

  async function setPlan(by: PlanParty, issuer: string, value: string, plan: string) {
    const record = await planRecordOf(by, issuer, value)
    store().plans.set(DEFAULT_KEYS.plan + record, plan)
  }

  async function createKey({
    sub,
    roles = [],
    scope = [],
    tenant,
    plan,
  }: TestedApiKey): Promise<string> {
    const key = newApiKey()
    const id = crypto.randomUUID()
    if (plan !== undefined) await setPlan('key', publicUrl, id, plan)
    await store().references.put(await credentialHash(key), {
      kind: 'api_key',
      key: id,
      tokenId: crypto.randomUUID(),
      tokenIssuer: publicUrl,
      issuer: publicUrl,
      subject: sub,
      tenant,
      roles: [...roles],
      scopes: [...scope],
      audiences: [publicUrl],
      issuedAtSeconds: Math.floor(now() / 1000),
      expiresAtSeconds: null,
    })
    return key
  }

  function createApiKey(apiKey: TestedApiKey): Promise<string> {
    const name = JSON.stringify(apiKey)
    const key = apiKeys.get(name) ?? createKey(apiKey)
    apiKeys.set(name, key)
    return key
  }

  return {
    tokenOf: signToken,
    createKey,

    /** Returns the credential that a request sends; undefined for an anonymous caller. */
    async credentialOf({ as, token, apiKey, dpop = false }: TestedRequest) {
      const given = Object.entries({ as, token, apiKey }).flatMap(([name, value]) =>
        value === undefined ? [] : [`\`${name}\``],
      )
      if (given.length > 1)
        throw new TypeError(`request: has both ${given.join(' and ')}; keep one of them`)
      if (dpop && given.length === 0)
        throw new TypeError('request: `dpop` needs a credential; add `as`, `token` or `apiKey`')
      if (apiKey !== undefined) return createApiKey(apiKey)
      if (as === undefined) return token
      if (!dpop) return signToken(as)
      const { thumbprint: jkt } = await prover()
      return signToken({ ...as, claims: { cnf: { jkt }, ...as.claims } })
    },

    /** Signs the proof of the client for a request with this credential. */
    async proofOf({ method, url }: Request, token: string, nonce: string | undefined) {
      const target = publicUrl + new URL(url).pathname
      return (await prover()).prove({ method, url: target, token, nonce, nowMs: now() })
    },

    async assignPlan({ plan, issuer = names[0], sub, client, tenant }: TestedPlan) {
      const parties = [
        ['subject', sub],
        ['client', client],
        ['tenant', tenant],
      ] as const
      for (const [by, value] of parties)
        if (value !== undefined) await setPlan(by, issuer, value, plan)
    },

    /** Forgets the API keys: a new store has none of them. */
    forgetKeys: () => apiKeys.clear(),
  }
}
