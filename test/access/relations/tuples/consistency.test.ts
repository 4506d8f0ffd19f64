import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  decodeConsistency,
  encodeConsistency,
} from '../../../../src/access/relations/consistency.ts'

const nowMs = Date.parse('2026-11-22T03:00:00Z')
const version = nowMs * 1_000 + 123

const tenants = fc.oneof(
  fc.constant(null),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 256 }),
)

describe('a consistency token', () => {
  test('returns its version to its tenant, and fits a header', () => {
    fc.assert(
      fc.property(tenants, fc.nat({ max: version }), (tenant, made) => {
        const token = encodeConsistency(made, tenant)
        expect(token).toMatch(/^[\w.-]+$/)
        expect(decodeConsistency(token, tenant, nowMs)).toBe(made)
      }),
    )
  })

  test('is refused for another tenant', () => {
    fc.assert(
      fc.property(tenants, tenants, (tenant, other) => {
        fc.pre(tenant !== other)
        expect(decodeConsistency(encodeConsistency(version, tenant), other, nowMs)).toBe(undefined)
      }),
    )
  })

  test('is refused if its version is more than a minute in the future', () => {
    const latest = (nowMs + 60_000) * 1_000
    expect(decodeConsistency(encodeConsistency(latest, 'acme'), 'acme', nowMs)).toBe(latest)
    expect(decodeConsistency(encodeConsistency(latest + 1, 'acme'), 'acme', nowMs)).toBe(undefined)
  })

  test.each([
    '',
    'v1',
    'v1..',
    'v2.1.',
    'v1.1',
    'v1.01.',
    'v1.-1.',
    'v1.1.5.',
    'v1.A.',
    ' v1.1.',
    'v1.1.\n',
    'v1.1.=',
    'v1.zzzzzzzzzzz.',
    'v1.zzzzzzzzzzzz.',
    'v1.1., v1.1.',
    'null',
  ])('%j is refused', (text) => {
    expect(decodeConsistency(text, null, nowMs)).toBe(undefined)
  })

  test('has one spelling: another encoding of the same bytes is refused', () => {
    // "acme" is YWNtZQ; the last digit of it has four unused bits.
    expect(decodeConsistency('v1.1.YWNtZQ', 'acme', nowMs)).toBe(1)
    expect(decodeConsistency('v1.1.YWNtZR', 'acme', nowMs)).toBe(undefined)
    expect(decodeConsistency('v1.1.YWNtZQ==', 'acme', nowMs)).toBe(undefined)
  })
})
