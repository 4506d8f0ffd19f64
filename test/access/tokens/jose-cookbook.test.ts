import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { bearerToken } from '../../../src/access/tokens/credential.ts'
import { readHeader, verifySignature } from '../../../src/access/tokens/jws.ts'
import { createInlineKeySet } from '../../../src/access/tokens/key-set.ts'
import { createTokenVerifier } from '../../../src/access/tokens/verifier.ts'
import { ALGORITHMS } from '../../../src/validators/jwk.ts'
import { createSigner, issuerOf, NOW_MS, outcome } from './signer.ts'

interface Example {
  readonly input: { readonly key?: { kty: string } }
  readonly output: {
    readonly compact?: string
    readonly json: unknown
    readonly json_flat?: unknown
  }
}

const root = join(import.meta.dirname, '../../vectors/jose-cookbook')
const examplesIn = (folder: string): [string, Example][] =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.json'))
    .map((name) => [name, JSON.parse(readFileSync(join(root, folder, name), 'utf8')) as Example])

const signed = [
  ...examplesIn('jws'),
  ...examplesIn('rfc7797'),
  ['jws.json', curve('jws.json')] as const,
]
const encrypted = [...examplesIn('jwe'), ['ecdh-es.json', curve('ecdh-es.json')] as const]

function curve(name: string): Example {
  return JSON.parse(readFileSync(join(root, 'curve25519', name), 'utf8')) as Example
}

/** Returns each form of an example that a client might send behind `Bearer`. */
const formsOf = ({ output }: Example) =>
  [output.compact, JSON.stringify(output.json), JSON.stringify(output.json_flat)].filter(
    (form) => form !== undefined,
  )

async function bearer(form: string): Promise<string> {
  const { publicJwk } = await createSigner('ES256')
  const verifier = createTokenVerifier({ issuers: [issuerOf([publicJwk])], now: () => NOW_MS })
  return outcome(() => verifier.verify(bearerToken(`Bearer ${form}`)))
}

describe('JOSE cookbook', () => {
  it('contains the examples', () => {
    expect(signed).toHaveLength(11)
    expect(encrypted).toHaveLength(14)
  })

  it.each(encrypted)(
    '%s is refused as a bearer token, in every form [S20, S22]',
    async (_, example) => {
      for (const form of formsOf(example)) {
        expect(await bearer(form)).toMatch(/^token_rejected:(segments|authorization_grammar)$/)
      }
    },
  )

  it.each(signed)(
    '%s is refused as an access token, in every form [S10, S20]',
    async (_, example) => {
      for (const form of formsOf(example)) expect(await bearer(form)).toMatch(/^token_rejected:/)
    },
  )

  it('detached and unencoded payloads are refused, though their signatures are valid [S10, S20]', async () => {
    const detached = Object.fromEntries(signed)['4_5.signature_with_detached_content.json']
    const unencoded = Object.fromEntries(signed)['hmac-sha2_b64_false.json']
    expect(await bearer(detached?.output.compact ?? '')).toBe('token_rejected:segments')
    expect(await bearer(unencoded?.output.compact ?? '')).toMatch(/^token_rejected:/)
    const header = (unencoded?.output.compact ?? '').split('.')[0]
    expect(await outcome(() => readHeader(`${header}.QUFB.QUFB`))).toBe('token_rejected:crit')
  })

  it('the same code verifies the signatures of the plain examples', async () => {
    const plain = [
      '4_1.rsa_v15_signature.json',
      '4_2.rsa-pss_signature.json',
      '4_3.ecdsa_signature.json',
      '4_4.hmac-sha2_integrity_protection.json',
    ]
    for (const name of plain) {
      const { input, output } = Object.fromEntries(signed)[name] as Example
      const { d: _private, ...publicKey } = input.key as { kty: string; d?: string }
      const key = Object.fromEntries(
        Object.entries(publicKey).filter(
          ([member]) => !['p', 'q', 'dp', 'dq', 'qi'].includes(member),
        ),
      ) as { kty: string }
      const keySet = createInlineKeySet({ keys: [key] }, ALGORITHMS)
      const jws = output.compact ?? ''
      await verifySignature(jws, await keySet.find(readHeader(jws)))
      const other = `${jws.slice(0, jws.lastIndexOf('.'))}.${jws.slice(jws.lastIndexOf('.') + 1).replace(/^./, (c) => (c === 'A' ? 'B' : 'A'))}`
      expect(
        await outcome(async () => verifySignature(other, await keySet.find(readHeader(other)))),
      ).toBe('token_rejected:signature')
    }
  })
})
