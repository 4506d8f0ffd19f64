/** Tokens of each provider, at a gateway that only the entry of the guide adapts to the provider. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTokenVerifier } from '../../src/access/tokens/verifier.ts'
import { PRESETS, type PresetName } from '../../src/identity-providers/presets.ts'
import { SOURCES, type Source } from '../../src/identity-providers/sources.ts'
import { issuers } from '../../src/validators/issuer.ts'
import type { Algorithm } from '../../src/validators/jwk.ts'
import { createSigner, type Signer } from '../access/tokens/signer.ts'
import { blocksOf } from '../docs/blocks.ts'
import { readDocument } from '../docs/documents.ts'
import { mistakes, withIssuers } from '../validators/environment.ts'
import { acceptanceTable, type Measured } from './acceptance.ts'
import { DOCUMENTED, type Documented, type RefusedToken, type Token } from './documented-tokens.ts'
import { type ProviderGateway, startProviderGateway } from './gateway.ts'

const ALGORITHMS: readonly Algorithm[] = ['RS256', 'ES256', 'ES384', 'EdDSA']
const signers = new Map<Algorithm, Signer>(
  await Promise.all(ALGORITHMS.map(async (alg) => [alg, await createSigner(alg)] as const)),
)
const rows = Object.entries(DOCUMENTED) as [PresetName, Documented][]
const guideEntries = new Map<PresetName, Readonly<Record<string, unknown>>>(
  blocksOf(readDocument('docs/identity-providers.md'))
    .filter(({ language }) => language === 'json')
    .map(({ text }) => JSON.parse(text))
    .map((entry) => [entry.preset, entry]),
)

function signerOf({ header }: Documented): Signer {
  const signer = signers.get(header.alg ?? 'RS256')
  if (signer === undefined) throw new Error(`no signer for ${header.alg}`)
  return signer
}

/** Returns the entry of the guide. Only its key set is replaced, which is at the provider. */
function entryOf(preset: PresetName) {
  const { jwksUri: _, ...entry } = guideEntries.get(preset) ?? {}
  return { ...entry, jwks: { keys: [signerOf(DOCUMENTED[preset]).publicJwk] } }
}

const principalOf = (preset: PresetName, token: string) =>
  createTokenVerifier({ issuers: issuers.parse([entryOf(preset)]) }).verify(token)

function signed(row: Documented, { claims, header, instead }: Token = {}) {
  const { kid, alg, signRaw } = signerOf(row)
  const now = Math.floor(Date.now() / 1000)
  const times = { iat: now, nbf: now, exp: now + 300 }
  return signRaw(
    JSON.stringify({ kid, ...row.header, alg, ...header }),
    JSON.stringify({ ...times, ...(instead ?? row.claims), ...claims }),
  )
}

const PAST_SECONDS = Math.floor(Date.now() / 1000) - 600
const EXPIRED: Token = {
  claims: { iat: PAST_SECONDS, nbf: PAST_SECONDS, exp: PAST_SECONDS + 300 },
}
/** OpenID Connect Back-Channel Logout 1.0 section 2.4. */
const events = { 'http://schemas.openid.net/event/backchannel-logout': {} }
const LOGOUT_TOKENS: readonly Token[] = [
  { header: { typ: 'logout+jwt' } },
  { header: { typ: 'logout+jwt' }, claims: { events } },
  { header: { typ: 'JWT' }, claims: { events } },
]
const REFRESH_TOKENS: readonly Token[] = [
  { claims: { typ: 'Refresh' } },
  { claims: { type: 'refresh' } },
  { claims: { token_type: 'refresh_token' } },
  { claims: { token_use: 'refresh' } },
  { header: { typ: 'refresh+jwt' } },
]
/** Scopes that name no permission of the policy. */
const OTHER_SCOPES: Token = {
  claims: { scope: 'openid read:orders', scp: ['read:orders'], permissions: ['read:orders'] },
}

let gateway: ProviderGateway
beforeAll(async () => {
  gateway = await startProviderGateway(rows.map(([preset]) => entryOf(preset)))
})
afterAll(() => gateway.close())

/** Sends a token where the entry expects tokens. */
function outcomeOf(preset: PresetName, token: string): Promise<string> {
  const [issuer] = issuers.parse([entryOf(preset)])
  return gateway.outcomeOf(token, issuer?.tokenSources?.[0])
}

/** Returns the outcomes of several tokens, each outcome once. */
async function outcomesOf(preset: PresetName, tokens: readonly Token[]): Promise<string> {
  const outcomes = new Set<string>()
  for (const token of tokens)
    outcomes.add(await outcomeOf(preset, await signed(DOCUMENTED[preset], token)))
  return [...outcomes].join(', ')
}

/** Revokes the token, if it has an id, and then its subject. */
async function outcomesAfterRevocation(preset: PresetName): Promise<string> {
  const row = DOCUMENTED[preset]
  const token = await signed(row)
  expect(await outcomeOf(preset, token)).toBe('200')
  const { issuer, subject, tokenIdHash, expiresAtSeconds } = await principalOf(preset, token)
  const outcomes: string[] = []
  if (tokenIdHash !== undefined) {
    await gateway.revocations.revokeToken({ tokenIdHash, untilSeconds: expiresAtSeconds })
    outcomes.push(await outcomeOf(preset, token))
  }
  const atSeconds = Math.floor(Date.now() / 1000)
  const order = { kind: 'subject', issuer, value: subject, ttlSeconds: 600 } as const
  await gateway.revocations.revokeBefore({ ...order, atSeconds })
  const { jti, uti } = row.claims
  // Issued in the second of the revocation: a token of the next second is valid.
  const ids = { jti: jti && `${jti}2`, uti: uti && `${uti}2` }
  const another = await signed(row, { claims: { ...ids, iat: atSeconds } })
  outcomes.push(await outcomeOf(preset, another))
  return outcomes.join(', ')
}

const measurements = new Map<PresetName, Promise<Measured>>()

/** Measures a preset once, its revocation last. */
function measured(preset: PresetName): Promise<Measured> {
  const known = measurements.get(preset) ?? measure(preset)
  measurements.set(preset, known)
  return known
}

async function measure(preset: PresetName): Promise<Measured> {
  const row = DOCUMENTED[preset]
  const accepted: Record<string, string> = {}
  const others = { 'scopes that name no permission': OTHER_SCOPES, ...row.accepted }
  for (const [what, token] of Object.entries(others))
    accepted[what] = await outcomesOf(preset, [token])
  const refused: Record<string, string> = {}
  for (const [what, token] of Object.entries(row.refused))
    if (typeof token !== 'string') refused[what] = await outcomesOf(preset, [token])
  return {
    accepted,
    refused,
    'access token': await outcomesOf(preset, [{}]),
    'without roles': await outcomesOf(preset, [{ claims: row.withoutRoles }]),
    expired: await outcomesOf(preset, [EXPIRED]),
    'logout token': await outcomesOf(preset, LOGOUT_TOKENS),
    'refresh token': await outcomesOf(preset, REFRESH_TOKENS),
    revoked: await outcomesAfterRevocation(preset),
  }
}

describe.each(rows)('%s', (preset, row) => {
  test('accepts the documented tokens, whatever scopes they have', async () => {
    const { 'access token': token, accepted } = await measured(preset)
    expect(token).toBe('200')
    for (const [what, outcome] of Object.entries(accepted)) expect(outcome, what).toBe('200')
  })

  test('reads the identity, and maps roles', async () => {
    expect(await principalOf(preset, await signed(row))).toMatchObject(row.identity)
    const { 'without roles': outcome } = await measured(preset)
    expect(outcome).toBe('403 permission_missing:orders:read')
  })

  test('refuses other tokens of the provider', async () => {
    const isToken = (entry: [string, RefusedToken | string]): entry is [string, RefusedToken] =>
      typeof entry[1] !== 'string'
    const expected = Object.entries(row.refused)
      .filter(isToken)
      .map(([what, { check }]) => [what, `401 token_rejected:${check}`])
    expect((await measured(preset)).refused).toEqual(Object.fromEntries(expected))
  })

  test('refuses expired tokens, logout tokens, refresh tokens, and the signature of another key', async () => {
    const outcomes = await measured(preset)
    expect(outcomes.expired).toBe('401 token_rejected:exp')
    expect(outcomes['logout token']).toMatch(REFUSED_BY_KIND)
    expect(outcomes['refresh token']).toMatch(REFUSED_BY_KIND)
    const forged = (await signed(row)).replace(/\.[^.]{4}([^.]*)$/, '.AAAA$1')
    expect(await outcomeOf(preset, forged)).toBe('401 token_rejected:signature')
  })

  test('refuses a revoked token and a revoked subject on the next request [S31]', async () => {
    expect((await measured(preset)).revoked).toMatch(
      /^(401 token_revoked:token, )?401 token_revoked:subject$/,
    )
  })
})

test('scopes grant nothing to a user whose roles are all dropped by the map [S64]', async () => {
  const row = DOCUMENTED.okta
  // The other subject and its token are revoked.
  const bob = { sub: 'bob@example.com', jti: 'AT.bob' }
  const tokenOf = (groups: string[]) =>
    signed(row, { claims: { ...bob, groups, scp: ['openid', 'orders:read'] } })
  expect(await outcomeOf('okta', await tokenOf(['Everyone']))).toBe(
    '403 permission_missing:orders:read',
  )
  expect(await outcomeOf('okta', await tokenOf([]))).toBe('200')
})

/** One or several refusals, and nothing else. */
const REFUSED_BY_KIND = /^(401 token_rejected:(typ|refused_claim|required_claim)(, |$))+$/

test('the acceptance table contains what was measured', async () => {
  const all: [PresetName, Measured][] = []
  for (const [preset] of rows) all.push([preset, await measured(preset)])
  await expect(acceptanceTable(all)).toMatchFileSnapshot(
    '../../docs/design/identity-provider-acceptance.md',
  )
})

describe('a preset', () => {
  test('has a source with a link, and a date exactly if a copy of the documentation was read', () => {
    expect(Object.keys(SOURCES).sort()).toEqual(Object.keys(PRESETS).sort())
    for (const [name, { links, date, copy }] of Object.entries<Source>(SOURCES)) {
      expect(links.length, name).toBeGreaterThan(0)
      for (const link of links) expect(link).toMatch(/^https:\/\//)
      expect(date === undefined, name).toBe(copy === undefined)
      if (date !== undefined) expect(date, name).toMatch(/^20\d\d-\d\d-\d\d$/)
    }
  })

  test('without documentation that was read names the source code, and what is not confirmed', () => {
    for (const [name, source] of Object.entries<Source>(SOURCES)) {
      if (source.date !== undefined) continue
      expect(source.code?.length, name).toBeGreaterThan(0)
      expect(source.unverified?.length, name).toBeGreaterThan(0)
    }
  })

  test('must be one of the table', () => {
    const [mistake = ''] = mistakes(withIssuers({ preset: 'oktaa', issuer: 'https://a.test' }))
    expect(mistake).toMatch(/^ISSUERS\[0\]\.preset: must be one of auth0, authentik, /)
    for (const preset of ['constructor', '', null, 1, ['okta']])
      expect(mistakes(withIssuers({ preset })), String(preset)).toHaveLength(1)
  })

  test('with an issuer and an audience is complete', () => {
    for (const [preset] of rows) {
      const { issuer, audience, require, jwksUri } = guideEntries.get(preset) ?? {}
      const fields = { issuer, audience, require }
      // An issuer that is no URL has no metadata.
      const keySet = `${issuer}`.startsWith('https:') ? {} : { jwksUri }
      expect(mistakes(withIssuers({ preset, ...fields, ...keySet })), preset).toEqual([])
    }
  })

  test('is overridden field by field, and rule by rule', () => {
    const okta = { preset: 'okta', issuer: 'https://a.test', audience: 'a' }
    const of = (fields: object) => issuers.parse([{ ...okta, ...fields }])[0]
    expect(of({})).toMatchObject({ require: { jti: 'AT.*' }, clientClaim: 'cid' })
    expect(of({ clientClaim: 'azp', typ: 'JWT' })).toMatchObject({ clientClaim: 'azp', typ: 'JWT' })
    expect(of({ require: { ver: 1 } })).toMatchObject({ require: { jti: 'AT.*', ver: 1 } })
    expect(of({ require: { jti: '*' } })).toMatchObject({ require: { jti: '*' } })
  })

  test('fills in the URL of the key set', () => {
    const of = (entry: object) => issuers.parse([entry]).map(({ jwksUri }) => jwksUri)
    const supabase = { preset: 'supabase', issuer: 'https://ref.supabase.co/auth/v1/' }
    expect(of(supabase)).toEqual(['https://ref.supabase.co/auth/v1/.well-known/jwks.json'])
    const spaced = { ...supabase, issuer: ` ${supabase.issuer}\n` }
    expect(of(spaced)).toEqual(of(supabase))
    expect(of({ ...supabase, jwksUri: 'https://a.test/k' })).toEqual(['https://a.test/k'])
  })

  test.each([
    ['github-actions', 'repository_owner'],
    ['gitlab-ci', 'namespace_path'],
  ])('%s must be restricted, because every account gets tokens', (preset, claim) => {
    const entry = { preset, audience: 'api' }
    expect(mistakes(withIssuers(entry))).toEqual([
      expect.stringMatching(/^ISSUERS\[0\]\.require: must restrict one of .*other accounts/),
    ])
    expect(mistakes(withIssuers({ ...entry, require: { ref: 'main' } }))).toHaveLength(1)
    expect(mistakes(withIssuers({ ...entry, require: { [claim]: 'acme' } }))).toEqual([])
  })
})

describe('tenants', () => {
  const entra = { preset: 'entra', audience: 'api' }
  const of = (fields: object) => mistakes(withIssuers({ ...entra, ...fields }))

  test('are issuers of their own', () => {
    const tenants = ['9122040d-6c67-4c5b-b112-36a304b66dad', 'contoso.example']
    const found = issuers.parse([{ ...entra, tenants }])
    expect(found.map(({ issuer }) => issuer)).toEqual(
      tenants.map((tenant) => `https://login.microsoftonline.com/${tenant}/v2.0`),
    )
  })

  test('must be named one by one', () => {
    expect(of({})).toEqual([
      'ISSUERS[0].tenants: must be given exactly if the issuer contains {tenantid}',
    ])
    for (const tenant of ['common', 'organizations', 'consumers', '*', '', '../x', 'a/b'])
      expect(of({ tenants: [tenant] }), tenant).toHaveLength(1)
    expect(of({ tenants: [] })).toHaveLength(1)
    const issuer = 'https://sts.windows.net/9122040d-6c67-4c5b-b112-36a304b66dad/'
    expect(of({ issuer })).toEqual([])
    expect(of({ issuer, tenants: ['contoso.example'] })).toHaveLength(1)
    expect(of({ tenants: ['a.example', 'a.example'] })).toEqual([
      'ISSUERS[1].issuer: duplicate issuer',
    ])
  })
})
