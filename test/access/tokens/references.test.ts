import { describe, expect, it } from 'vitest'
import type { Principal } from '../../../src/access/principal.ts'
import { tokenIdHash } from '../../../src/access/token-id.ts'
import {
  checkRecord,
  principalOfRecord,
  type ReferenceRecord,
  storedReference,
} from '../../../src/access/tokens/reference.ts'
import { parseStoredReference } from '../../../src/access/tokens/reference-record.ts'
import { createReferences } from '../../../src/access/tokens/references.ts'
import { GATEWAY, IDP, recordOf } from '../admission/callers.ts'
import { NOW_MS, NOW_SECONDS, outcome } from './signer.ts'

const record = (claims: Partial<ReferenceRecord> = {}) =>
  recordOf({ issuedAtSeconds: NOW_SECONDS, expiresAtSeconds: NOW_SECONDS + 60, ...claims })
const use = { audience: GATEWAY, nowMs: NOW_MS }

describe('the principal of a record', () => {
  it('equals that of a JWT with the same claims, and is identified by its token id, not by its text', async () => {
    const stored = record({ confirmation: 'k'.repeat(43) })
    expect(await principalOfRecord(stored)).toEqual({
      issuer: IDP,
      tokenIssuer: GATEWAY,
      subject: stored.subject,
      client: stored.client,
      tenant: stored.tenant,
      session: stored.session,
      roles: ['reader'],
      scopes: ['orders:read'],
      audiences: stored.audiences,
      tokenId: stored.tokenId,
      tokenIdHash: await tokenIdHash(GATEWAY, stored.tokenId),
      confirmation: 'k'.repeat(43),
      issuedAtSeconds: NOW_SECONDS,
      expiresAtSeconds: NOW_SECONDS + 60,
    } satisfies Principal)
  })

  it('has lists that no request can change', async () => {
    const principal = await principalOfRecord(record())
    for (const name of ['roles', 'scopes', 'audiences'] as const)
      expect(() => (principal[name] as string[]).push('admin')).toThrow(TypeError)
  })

  it('expires with the record, with five seconds of tolerance [S14]', () => {
    const failed = (expiresAtSeconds: number | null) =>
      checkRecord(record({ expiresAtSeconds }), use)
    expect(failed(NOW_SECONDS)).toBeUndefined()
    expect(failed(NOW_SECONDS - 4)).toBeUndefined()
    expect(failed(NOW_SECONDS - 5)).toBe('exp')
    expect(failed(null)).toBeUndefined()
  })

  it('is accepted for its audiences only, compared as a whole [S13]', () => {
    for (const audiences of [[], ['https://elsewhere.test'], [`${GATEWAY}/`], ['https://gateway']])
      expect(checkRecord(record({ audiences }), use)).toBe('aud')
    expect(checkRecord(record({ audiences: [GATEWAY] }), use)).toBeUndefined()
  })

  it('never expires for an API key without an expiry', async () => {
    const principal = await principalOfRecord(record({ expiresAtSeconds: null }))
    expect(principal.expiresAtSeconds).toBe(Number.POSITIVE_INFINITY)
  })
})

describe('the stored form of a record', () => {
  it('returns the same record, whatever its text members contain', async () => {
    for (const claims of [
      {},
      { subject: 'a:b*', tenant: 'ü '.repeat(200), client: undefined, session: undefined },
      { kind: 'api_key', expiresAtSeconds: null, roles: [], scopes: [] },
    ] as const) {
      const kept = record(claims as Partial<ReferenceRecord>)
      const { client, session, ...rest } = kept
      expect(parseStoredReference(await storedReference(kept))).toEqual({
        ...rest,
        ...(client !== undefined && { client }),
        ...(session !== undefined && { session }),
      })
    }
  })

  it('is an outage if the text is anything else, not an unknown reference [R06]', async () => {
    const text = await storedReference(record())
    for (const malformed of [
      '',
      'null',
      '[]',
      '{}',
      JSON.stringify(record()),
      text.slice(1),
      text.replace('"subject"', '"admin"'),
      text.replace('{"record":{', '{"record":{"more":1,'),
      text.replace(/"issuedAtSeconds":\d+/, '"issuedAtSeconds":"1"'),
      null,
      undefined,
      7,
      {},
    ])
      expect(await outcome(() => parseStoredReference(malformed)), String(malformed)).toBe(
        'redis:malformed',
      )
  })
})

describe('the cache of references', () => {
  let nowMs = NOW_MS
  const references = createReferences({ audience: GATEWAY, now: () => nowMs })

  it('returns the same object for exactly the same text', async () => {
    const principal = await principalOfRecord(record())
    references.remember('one', principal)
    expect(references.recall('one')).toBe(principal)
    expect(references.recall('One')).toBeUndefined()
    expect(references.recall('two')).toBeUndefined()
  })

  it('keeps a reference until it expires, and for five minutes at most', async () => {
    nowMs = NOW_MS
    references.remember('short', await principalOfRecord(record()))
    references.remember('long', await principalOfRecord(record({ expiresAtSeconds: null })))
    nowMs = NOW_MS + 64_999
    expect(references.recall('short')).toBeDefined()
    nowMs = NOW_MS + 65_000
    expect(references.recall('short')).toBeUndefined()
    nowMs = NOW_MS + 299_999
    expect(references.recall('long')).toBeDefined()
    nowMs = NOW_MS + 300_000
    expect(references.recall('long')).toBeUndefined()
  })

  it('is bounded in bytes by the size of its principals, and evicts the least recently used [R19]', async () => {
    nowMs = NOW_MS
    const small = await principalOfRecord(record({ roles: [] }))
    const large = await principalOfRecord(record({ roles: ['r'.repeat(5_000)] }))
    const known = (principal: Principal, maxCachedBytes: number) => {
      const bounded = createReferences({ audience: GATEWAY, now: () => nowMs, maxCachedBytes })
      for (const text of ['a', 'b', 'c']) bounded.remember(text, principal)
      return ['a', 'b', 'c'].filter((text) => bounded.recall(text))
    }
    expect(known(small, 12_000)).toEqual(['a', 'b', 'c'])
    expect(known(small, 8_500)).toEqual(['b', 'c'])
    expect(known(large, 38_000)).toEqual(['b', 'c'])
    expect(known(large, 15_000)).toEqual([])
  })
})
