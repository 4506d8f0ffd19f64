/** Compares code in the documents with the example files that they are taken from. */
import { parseEnv } from 'node:util'
import { describe, expect, test } from 'vitest'
import decisionPoint from '../../examples/configuration/decision-point.ts'
import policy from '../../examples/configuration/policy.ts'
import { parseSigningKeys } from '../../src/access/tokens/signing-keys.ts'
import { EVERY_FEATURE, parseConfig } from '../../src/features/environment.ts'
import { nodeEnvironment } from '../../src/runtimes/node/environment/node-environment.ts'
import { createKey } from '../harness/issuer.ts'
import { type Block, blocksOf, unindented } from './blocks.ts'
import { DOCUMENTS, readConfiguration, readDocument } from './documents.ts'

/** The number of `ts` blocks that a document has at least, and the files that contain them. */
const SOURCES = [
  ['dev/package/README.md', 1, ['examples/testing/policy.ts']],
  [
    'docs/middleware.md',
    3,
    [
      'examples/hono/app.ts',
      'examples/hono/node.ts',
      'examples/middleware/redis.ts',
      'examples/middleware/worker.ts',
    ],
  ],
  [
    'docs/guards.md',
    8,
    [
      'examples/guards/express.ts',
      'examples/guards/try.ts',
      'examples/guards/next.ts',
      'examples/frameworks/fastify/guard-routes.ts',
      'examples/frameworks/fastify/app.ts',
      'examples/frameworks/nest/src/guard.ts',
      'examples/frameworks/nest/src/main.ts',
      'examples/frameworks/nest/src/app.module.ts',
    ],
  ],
  ['docs/issuers.md', 1, ['examples/issuers/policy.ts']],
  ['docs/package.md', 2, ['examples/minimal/gateway.ts', 'examples/minimal/audit.ts']],
  ['docs/node.md', 2, ['examples/minimal/node.ts', 'examples/node/policy.ts']],
  ['docs/features.md', 2, ['examples/feature/change-freeze.ts', 'examples/feature/policy.ts']],
  ['docs/forward-auth.md', 1, ['examples/forward-auth/policy.ts']],
  ['docs/mcp.md', 1, ['examples/mcp/policy.ts']],
  ['docs/your-api.md', 3, ['examples/configuration/policy.ts']],
  [
    'docs/openapi-import.md',
    2,
    ['examples/openapi/routes.generated.ts', 'examples/openapi/policy.ts'],
  ],
  ['docs/api-keys.md', 2, ['examples/plans/policy.ts']],
  ['docs/origins.md', 3, ['examples/shop/policy.ts', 'examples/credentials/policy.ts']],
  [
    'docs/testing.md',
    4,
    [
      'examples/testing/notes.policy-test.ts',
      'examples/testing/policy.test.ts',
      'examples/testing/app.test.ts',
      'examples/testing/issuer.ts',
    ],
  ],
  ['docs/sign-in.md', 2, ['examples/sign-in/policy.ts', 'examples/sign-in/languages.ts']],
  ['docs/console.md', 1, ['examples/console/policy.ts']],
  ['docs/signals.md', 2, ['examples/signals/policy.ts', 'examples/signals/polling.ts']],
  ['docs/authorization-server.md', 5, ['examples/agents/policy.ts', 'examples/fapi/policy.ts']],
  [
    'docs/tutorial.md',
    3,
    [
      'examples/tutorial/first-policy.ts',
      'examples/tutorial/notes.policy-test.ts',
      'examples/tutorial/portcullis.config.ts',
    ],
  ],
  [
    'docs/migrate-from-jwt-middleware.md',
    2,
    ['examples/migration/hono-jwk.ts', 'examples/guards/express.ts'],
  ],
  ['docs/migrate-from-oauth2-proxy.md', 1, ['examples/migration/oauth2-proxy.ts']],
  ['docs/migrate-from-kong.md', 1, ['examples/migration/kong.ts']],
  [
    'docs/policy.md',
    9,
    [
      'examples/configuration/policy.ts',
      'examples/configuration/decision-point.ts',
      'examples/shop/policy.ts',
    ],
  ],
  ['docs/routes.md', 14, ['examples/configuration/policy.ts', 'examples/shop/policy.ts']],
  ['docs/limits.md', 3, ['examples/configuration/policy.ts']],
] as const

const blocksIn = (document: string, language: string): readonly Block[] =>
  blocksOf(readDocument(document)).filter((block) => block.language === language)

describe('TypeScript', () => {
  test.each(SOURCES)('of %s (at least %i blocks) is part of its example files', (...source) => {
    const [document, atLeast, files] = source
    const texts = files.map((file) => unindented(readDocument(file)))
    const blocks = blocksIn(document, 'ts')
    expect(blocks.length).toBeGreaterThanOrEqual(atLeast)
    for (const { text } of blocks)
      expect(texts.some((file) => file.includes(unindented(text))) ? '' : text).toBe('')
  })

  test('of every other user document is compared as well', () => {
    const documents = DOCUMENTS.filter((path) => !/^docs\/decisions\/|^bench\//.test(path))
    const withCode = documents.filter((path) => blocksIn(path, 'ts').length > 0)
    expect(withCode.sort()).toEqual(SOURCES.map(([document]) => document).sort())
  })
})

const { privateJwk } = await createKey('example')

/** Replaces omitted secrets (`…`): parts of a private key by those of a new key, others by text. */
const withSecrets = (text: string): string =>
  (['x', 'y', 'd'] as const)
    .reduce((all, name) => all.replaceAll(`"${name}":"…"`, `"${name}":"${privateJwk[name]}"`), text)
    .replaceAll('=…', `=${privateJwk.d}`)

describe('the configuration pages', () => {
  const blocks = blocksOf(readConfiguration())
  const blocksWith = (language: string) => blocks.filter((block) => block.language === language)
  const [issuers, clients] = blocksWith('json')
  const { REDIS_URL, ...environment } = Object.assign(
    {},
    ...[...blocksWith('toml'), ...blocksWith('ini')].map(({ text }) => parseEnv(withSecrets(text))),
    { ISSUERS: issuers?.text, CLIENTS: clients?.text },
  )

  test('shows the example files of issuers and clients', () => {
    expect(`${issuers?.text}\n`).toBe(readDocument('examples/configuration/issuers.json'))
    expect(`${clients?.text}\n`).toBe(readDocument('examples/configuration/clients.json'))
  })

  test('shows a Redis that the gateway accepts on Node', () => {
    const { UPSTASH_REDIS_REST_URL: _, UPSTASH_REDIS_REST_TOKEN: __, ...others } = environment
    const onNode = { ...others, REDIS_URL }
    expect(parseConfig(onNode, nodeEnvironment(onNode, EVERY_FEATURE)).redis.url).toBe(REDIS_URL)
  })

  test('shows an environment that the gateway accepts', () => {
    const config = parseConfig(environment)
    expect(config.redis.timeoutMs).toBe(400)
    expect(config.issuers).toMatchObject([
      { typ: 'JWT', tenantClaim: 'org_id' },
      { algorithms: ['ES256'], maxTokenAge: 3_600 },
      { typ: ['JWT', 'none'], clients: ['orders-*'] },
      { keySet: 'none', userinfo: { tokenPrefix: 'acct.' } },
      { tenantClaim: 'tid' },
      { issuer: 'https://login.microsoftonline.com/contoso.example/v2.0' },
      { issuer: 'https://api.example.com' },
    ])
    expect(config.clients).toMatchObject([
      { name: 'web', accessTokenSeconds: 600 },
      { name: 'billing', tenant: 'acme' },
      { name: 'agent', public: true },
    ])
    expect(config.decisionPoints.openfga).toBeDefined()
    expect(config.decisionPoints.authzen).toBeDefined()
    expect(config.traces?.headers).toMatchObject({ authorization: 'Bearer collector-token' })
    const auditKeys = JSON.parse(environment.AUDIT_SIGNING_KEYS)
    expect(parseSigningKeys(auditKeys).map(({ kid }) => kid)).toEqual(['audit-1'])
  })

  test('shows policies that the gateway accepts', () => {
    expect(policy.revocation).toEqual({ maxStalenessMs: 1_000 })
    expect(policy.tokens).toMatchObject({ accessTokenSeconds: 600 })
    expect(decisionPoint.relations).toMatchObject({ authority: { feature: 'openfga' } })
  })

  test('shows an example of every variable and every field', () => {
    const examples = ['toml', 'ini', 'sh', 'console', 'json', 'ts']
      .flatMap(blocksWith)
      .map(({ text }) => text)
      .join('\n')
    // The examples of these are their entries.
    const lists = ['ISSUERS', 'CLIENTS', 'routes']
    const names = [...readConfiguration().matchAll(/^\| `(\w+)` \|/gm)]
    const missing = names
      .map(([, name = '']) => name)
      .filter((name) => !lists.includes(name) && !new RegExp(`\\b${name}\\b`).test(examples))
    expect(names.length).toBeGreaterThan(100)
    expect(missing).toEqual([])
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
