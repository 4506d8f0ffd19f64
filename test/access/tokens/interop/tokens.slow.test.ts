import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { publicKeySet, publishedKeys } from '../../../../src/access/tokens/signing-keys.ts'
import { createTokenIssuer } from '../../../../src/access/tokens/token-issuer.ts'
import { createTokenVerifier } from '../../../../src/access/tokens/verifier.ts'
import { Denied } from '../../../../src/errors.ts'
import { full, GATEWAY, ALGORITHMS as ISSUED, keys, rememberingStore } from '../issuing.ts'
import { issuerOf } from '../signer.ts'
import { go, python } from './languages.ts'

const directory = mkdtempSync(join(tmpdir(), 'portcullis-interop-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))
const languages = [go(directory), python(directory)]
for (const { name, missing } of languages)
  if (missing !== undefined) console.warn(`S48 skipped for ${name}: ${missing}`)

/**
 * The libraries of the other languages do not support the name `Ed25519` (RFC 9864) yet; they use
 * `EdDSA`.
 */
const ALGORITHMS = ISSUED.filter((algorithm) => algorithm !== 'Ed25519')
const ownKeys = keys.filter(({ alg }) => alg !== 'Ed25519')

const IDP = 'https://idp.test'
const grant = { ...full, audiences: [GATEWAY] }

/** The last character that carries a complete sextet of the signature. */
function forged(token: string): string {
  const at = token.length - 3
  return `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`
}

async function issued() {
  const references = rememberingStore()
  const issuer = createTokenIssuer({
    keys: ownKeys,
    issuer: GATEWAY,
    references,
    defaultTtlSeconds: 900,
  })
  const tokens = ALGORITHMS.map(
    async (algorithm) => [algorithm, (await issuer.issue(grant, { algorithm })).token] as const,
  )
  return Object.fromEntries(await Promise.all(tokens)) as Record<string, string>
}

describe.each(languages)('$name', (language) => {
  const here = language.missing === undefined
  const now = Math.floor(Date.now() / 1000)

  test.runIf(here)('verifies the tokens of the gateway with its published keys [S48]', async () => {
    const tokens = await issued()
    const jwks = publicKeySet(publishedKeys(ownKeys, Date.now()))
    const verdicts = language.verify({ issuer: GATEWAY, audience: GATEWAY, now, jwks, tokens })
    expect(Object.keys(verdicts).sort()).toEqual([...ALGORITHMS].sort())
    for (const { claims, error } of Object.values(verdicts)) {
      expect(error).toBeUndefined()
      expect(claims).toMatchObject({
        iss: GATEWAY,
        aud: GATEWAY,
        sub: 'alice',
        sub_iss: 'https://idp.test/',
        client_id: 'app',
        scope: 'orders:read orders:write',
        roles: full.roles,
        tenant: 'acme',
        sid: full.session,
        jti: expect.stringMatching(/^[\da-f-]{36}$/),
        iat: expect.any(Number),
      })
      expect(Number(claims?.exp) - Number(claims?.iat)).toBe(900)
    }
  })

  test.runIf(here)(
    'refuses forged gateway tokens and gateway tokens for another audience [S48]',
    async () => {
      const tokens = await issued()
      const jwks = publicKeySet(publishedKeys(ownKeys, Date.now()))
      const right = { issuer: GATEWAY, audience: GATEWAY, now, jwks, tokens }
      const changed = Object.entries(tokens).map(([name, token]) => [name, forged(token)])
      for (const document of [
        { ...right, tokens: Object.fromEntries(changed) },
        { ...right, issuer: 'https://other.test' },
        { ...right, audience: 'https://other.test' },
      ])
        for (const { claims, error } of Object.values(language.verify(document))) {
          expect(claims).toBeUndefined()
          expect(error).toBeTruthy()
        }
    },
  )

  test.runIf(here)(
    'issues tokens that the gateway accepts, and the gateway refuses forged ones [S48]',
    async () => {
      const claims = {
        iss: IDP,
        aud: GATEWAY,
        sub: 'älice',
        client_id: 'app',
        iat: now,
        exp: now + 300,
        jti: crypto.randomUUID(),
        scope: 'a b',
        roles: ['reader'],
      }
      const { jwks, tokens } = language.mint({ claims })
      const config = issuerOf(jwks.keys as JsonWebKey[], { issuer: IDP, audience: GATEWAY })
      const verifier = createTokenVerifier({ issuers: [config] })
      expect(Object.keys(tokens).sort()).toEqual([...ALGORITHMS].sort())
      for (const token of Object.values(tokens)) {
        expect(await verifier.verify(token)).toMatchObject({
          issuer: IDP,
          subject: 'älice',
          client: 'app',
          scopes: ['a', 'b'],
          roles: ['reader'],
          tokenId: claims.jti,
        })
        await expect(verifier.verify(forged(token))).rejects.toBeInstanceOf(Denied)
      }
    },
  )
})
