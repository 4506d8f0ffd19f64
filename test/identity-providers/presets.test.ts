/** Tokens of each provider, at a gateway that only its configuration adapts to the provider. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PRESETS, type PresetName } from '../../src/identity-providers/presets.ts'
import { SOURCES, type Source } from '../../src/identity-providers/sources.ts'
import { createTokenVerifier } from '../../src/tokens/verifier.ts'
import { issuers } from '../../src/validators/issuer.ts'
import type { Algorithm } from '../../src/validators/jwk.ts'
import { mistakes, withIssuers } from '../config/environment.ts'
import { createSigner, type Signer } from '../tokens/signer.ts'
import { DOCUMENTED, type Documented, type Variant } from './documented-tokens.ts'
import { type ProviderGateway, startProviderGateway } from './gateway.ts'

const ALGORITHMS: readonly Algorithm[] = ['RS256', 'ES256', 'ES384', 'EdDSA']
const signers = new Map<Algorithm, Signer>(
  await Promise.all(ALGORITHMS.map(async (alg) => [alg, await createSigner(alg)] as const)),
)
const rows = Object.entries(DOCUMENTED) as [PresetName, Documented][]

const algorithmOf = ({ header }: Documented): Algorithm => header.alg ?? 'RS256'

function signerOf(row: Documented): Signer {
  const signer = signers.get(algorithmOf(row))
  if (signer === undefined) throw new Error(`no signer for ${algorithmOf(row)}`)
  return signer
}

/** Replaces the key set, which is at the provider, by keys of this test. */
function entryOf(row: Documented) {
  const { jwksUri: _, ...entry } = row.entry as Record<string, unknown>
  return { ...entry, jwks: { keys: [signerOf(row).publicJwk] } }
}

function tokenOf(row: Documented, { claims, header, instead }: Omit<Variant, 'check'> = {}) {
  const { kid, alg, signRaw } = signerOf(row)
  const now = Math.floor(Date.now() / 1000)
  const times = { iat: now, nbf: now, exp: now + 300 }
  return signRaw(
    JSON.stringify({ kid, ...row.header, alg, ...header }),
    JSON.stringify({ ...times, ...(instead ?? row.claims), ...claims }),
  )
}

let gateway: ProviderGateway
beforeAll(async () => {
  gateway = await startProviderGateway(rows.map(([, row]) => entryOf(row)))
})
afterAll(() => gateway.close())

describe.each(rows)('%s', (_, row) => {
  const [source] = issuers.parse([entryOf(row)])[0]?.tokenSources ?? []
  const outcomeOf = (token: string) => gateway.outcomeOf(token, source)

  test('accepts the documented token and reads its identity', async () => {
    const token = await tokenOf(row)
    expect(await outcomeOf(token)).toBe('200')
    const principal = await createTokenVerifier({ issuers: issuers.parse([entryOf(row)]) }).verify(
      token,
    )
    expect(principal).toMatchObject(row.identity)
    for (const [what, variant] of Object.entries(row.accepted ?? {}))
      expect(await outcomeOf(await tokenOf(row, variant)), what).toBe('200')
  })

  test('maps roles', async () => {
    const token = await tokenOf(row, { claims: row.withoutRoles })
    expect(await outcomeOf(token)).toBe('403 permission_missing:orders:read')
  })

  test.each(Object.entries(row.refused))('refuses %s', async (_what, variant) => {
    expect(await outcomeOf(await tokenOf(row, variant))).toBe(`401 token_rejected:${variant.check}`)
  })

  test('refuses an expired token, and the signature of another key', async () => {
    const now = Math.floor(Date.now() / 1000)
    const expired = { claims: { iat: now - 600, nbf: now - 600, exp: now - 300 } }
    expect(await outcomeOf(await tokenOf(row, expired))).toBe('401 token_rejected:exp')
    const token = await tokenOf(row)
    const forged = token.replace(/\.[^.]{4}([^.]*)$/, '.AAAA$1')
    expect(await outcomeOf(forged)).toBe('401 token_rejected:signature')
  })

  test('S31: refuses a revoked subject on the next request', async () => {
    const token = await tokenOf(row)
    expect(await outcomeOf(token)).toBe('200')
    const { issuer, subject } = await createTokenVerifier({
      issuers: issuers.parse([entryOf(row)]),
    }).verify(token)
    const atSeconds = Math.floor(Date.now() / 1000)
    const order = { kind: 'subject', issuer, value: subject, ttlSeconds: 600 } as const
    await gateway.revocations.revokeBefore({ ...order, atSeconds })
    expect(await outcomeOf(token)).toBe('401 token_revoked:subject')
  })
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
    for (const [preset, row] of rows) {
      const { issuer, audience, require } = row.entry
      const fields = { issuer, audience, require, tenants: row.entry.tenants }
      // Its issuer is no URL, so it has no metadata.
      const keySet = preset === 'stytch' ? { jwksUri: row.entry.jwksUri } : {}
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
