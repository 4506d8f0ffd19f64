import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { refuseMalformed } from '../../../src/access/tokens/jws.ts'
import { createTokenVerifier } from '../../../src/access/tokens/verifier.ts'
import { createSigner, goodClaims, issuerOf, NOW_MS, outcome, type Signer } from './signer.ts'

const root = join(import.meta.dirname, '../../vectors/json-test-suite/test_parsing')
const texts = readdirSync(root).map((name) => [name, readFileSync(join(root, name))] as const)
const good = new TextEncoder().encode(JSON.stringify(goodClaims))
const goodHeader = JSON.stringify({ alg: 'ES256', kid: 'ES256', typ: 'at+jwt' })

let signer: Signer
let verify: (token: string) => Promise<string>

beforeAll(async () => {
  signer = await createSigner('ES256')
  const verifier = createTokenVerifier({
    issuers: [issuerOf([signer.publicJwk])],
    now: () => NOW_MS,
  })
  verify = (token) => outcome(() => verifier.verify(token))
})

describe('JSONTestSuite', () => {
  it('contains its 318 texts', () => {
    expect(texts).toHaveLength(318)
  })

  it('each text as a header is a rejected token without any other error [S23]', async () => {
    for (const [name, text] of texts) {
      expect(await verify(await signer.signRaw(text, good)), name).toMatch(/^token_rejected:/)
    }
  })

  it('each text as a signed payload is a rejected token without any other error [S23]', async () => {
    for (const [name, text] of texts) {
      expect(await verify(await signer.signRaw(goodHeader, text)), name).toMatch(/^token_rejected:/)
    }
  })

  it('as the value of a claim, only invalid JSON rejects the token [S23]', async () => {
    const open = new TextEncoder().encode(`${JSON.stringify(goodClaims).slice(0, -1)},"x":`)
    const close = new TextEncoder().encode('}')
    for (const [name, text] of texts) {
      const payload = new Uint8Array([...open, ...text.subarray(0, 8_000), ...close])
      const token = await signer.signRaw(goodHeader, payload)
      const got = await verify(token)
      if (name.startsWith('n_')) expect(got, name).toMatch(/^token_rejected:/)
      else if (name.startsWith('i_') || name.includes('duplicated_key')) {
        expect(got, name).toMatch(/^(ok|token_rejected:payload_(json|encoding))$/)
      } else expect(got, name).toBe('ok')
    }
  })

  it('duplicate names are refused, though the suite calls them valid [S18]', async () => {
    const duplicated = texts.filter(([name]) => name.startsWith('y_object_duplicated_key'))
    expect(duplicated).toHaveLength(2)
    for (const [, text] of duplicated) {
      const token = await signer.signRaw(goodHeader, text)
      expect(() => refuseMalformed(token)).not.toThrow()
      expect(await verify(token)).toBe('token_rejected:payload_json')
    }
  })
})
