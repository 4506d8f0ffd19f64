/** The entries of docs/identity-providers.md are accepted by the gateway, one for each preset. */
import { describe, expect, test } from 'vitest'
import { PRESETS } from '../../src/identity-providers/presets.ts'
import { NOT_VERIFIED, SOURCES, type Source } from '../../src/identity-providers/sources.ts'
import { issuers } from '../../src/validators/issuer.ts'
import { blocksOf } from './blocks.ts'
import { readDocument } from './documents.ts'

const entries = blocksOf(readDocument('docs/identity-providers.md'))
  .filter(({ language }) => language === 'json')
  .map(({ text }) => JSON.parse(text))

describe('docs/identity-providers.md', () => {
  test('has one entry for each preset, in the order of the table', () => {
    const presets = entries.flatMap((entry) => entry.preset ?? [])
    expect(presets).toEqual(Object.keys(PRESETS))
  })

  test('names exactly the presets whose documentation was not read', () => {
    const sections = readDocument('docs/identity-providers.md').split('\n## ')
    for (const [preset, { date }] of Object.entries<Source>(SOURCES)) {
      const section = sections.find((text) => text.includes(`"preset": "${preset}"`)) ?? ''
      const isNamed = section.replace(/\s+/g, ' ').includes(NOT_VERIFIED)
      expect(isNamed, preset).toBe(date === undefined)
    }
  })

  test('has only entries that the gateway accepts', () => {
    for (const entry of entries) {
      const parsed = issuers.safeParse([entry].flat())
      expect(parsed.error?.issues, JSON.stringify(entry)).toBeUndefined()
    }
  })
})
