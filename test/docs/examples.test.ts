/** Compares code in the documents with the example files that they are taken from. */
import { describe, expect, test } from 'vitest'
import policy from '../../examples/configuration/policy.ts'
import { parseConfig } from '../../src/validators/environment.ts'
import { type Block, blocksOf, unindented } from './blocks.ts'
import { DOCUMENTS, readDocument } from './documents.ts'

/** The file of the `ts` blocks of a document, and how many there are at least. */
const SOURCES = [
  ['README.md', 'examples/middleware/worker.ts', 1],
  ['docs/middleware.md', 'examples/middleware/worker.ts', 1],
  ['docs/configuration.md', 'examples/configuration/policy.ts', 10],
] as const

const blocksIn = (document: string, language: string): readonly Block[] =>
  blocksOf(readDocument(document)).filter((block) => block.language === language)

describe('TypeScript', () => {
  test.each(SOURCES)('of %s is part of %s', (document, file, atLeast) => {
    const source = unindented(readDocument(file))
    const blocks = blocksIn(document, 'ts')
    expect(blocks.length).toBeGreaterThanOrEqual(atLeast)
    for (const { text } of blocks) expect(source).toContain(unindented(text))
  })

  test('of every other user document is compared as well', () => {
    const documents = DOCUMENTS.filter((path) => !/^docs\/decisions\/|^bench\//.test(path))
    const withCode = documents.filter((path) => blocksIn(path, 'ts').length > 0)
    expect(withCode.sort()).toEqual(SOURCES.map(([document]) => document).sort())
  })
})

describe('docs/configuration.md', () => {
  const [issuers, clients] = blocksIn('docs/configuration.md', 'json')
  const [variables] = blocksIn('docs/configuration.md', 'toml')

  test('shows the example files of issuers and clients', () => {
    expect(`${issuers?.text}\n`).toBe(readDocument('examples/configuration/issuers.json'))
    expect(`${clients?.text}\n`).toBe(readDocument('examples/configuration/clients.json'))
  })

  test('shows an environment that the gateway accepts', () => {
    const lines = [...(variables?.text ?? '').matchAll(/^([A-Z_]+) = "(.*)"$/gm)]
    expect(lines.length).toBeGreaterThan(4)
    const config = parseConfig({
      UPSTASH_REDIS_REST_URL: 'https://redis.example.com',
      UPSTASH_REDIS_REST_TOKEN: 'token',
      ...Object.fromEntries(lines.map(([, name = '', value = '']) => [name, value])),
      ISSUERS: issuers?.text,
      CLIENTS: clients?.text,
    })
    expect(config.redis.timeoutMs).toBe(400)
    expect(config.issuers).toMatchObject([{ typ: 'JWT', tenantClaim: 'org_id' }])
    expect(config.clients).toMatchObject([{ name: 'web', accessTokenSeconds: 600 }])
  })

  test('shows a policy that the gateway accepts', () => {
    expect(policy.revocation).toEqual({ maxStalenessMs: 1_000 })
    expect(policy.tokens).toMatchObject({ accessTokenSeconds: 600 })
  })
})

test('docs/errors.md shows a problem document with the members that it lists', () => {
  const [example] = blocksIn('docs/errors.md', 'json')
  const problem = JSON.parse(example?.text ?? '') as Record<string, string>
  expect(problem.type).toBe(`urn:portcullis:problem:${problem.code}`)
  const members = ['type', 'title', 'status', 'detail', 'code', 'requestId']
  expect(Object.keys(problem)).toEqual(members)
  expect(readDocument('docs/errors.md')).toContain(`| \`${problem.code}\` | ${problem.status} |`)
})
