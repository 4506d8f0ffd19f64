import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { addressBanKey, subjectBanKey } from '../../src/access/abuse/ban.ts'
import {
  DEFAULT_BANS,
  DEFAULT_EXEMPT,
  DEFAULT_FAILURES,
} from '../../src/access/abuse/definition.ts'
import { environmentSchema } from '../../src/features/environment.ts'
import { DEFAULT_MAX_BODY_BYTES, DEFAULT_ORIGIN_TIMEOUT_MS } from '../../src/policy/defaults.ts'
import { DEFAULT_TOKENS } from '../../src/policy/tokens.ts'
import { DEFAULT_KEYS } from '../../src/redis/keys.ts'
import { ROOT } from '../harness/process.ts'
import { DOCUMENTS as ALL_DOCUMENTS, readConfiguration } from './documents.ts'

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const filesBelow = (folder: string, ending: string) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith(ending))
    .map((path) => join(folder, path))

const configuration = readConfiguration()
const storage = read('docs/storage-schema.md')
const threats = read('docs/threat-model.md')
const DOCUMENTS = ALL_DOCUMENTS.filter((path) => !path.startsWith('bench/'))

/** Returns the first group of every match. */
function inOrder(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, first = '']) => first)
}

/** Like {@link inOrder}, but sorted and without duplicates. */
function found(text: string, pattern: RegExp): string[] {
  return [...new Set(inOrder(text, pattern))].sort()
}

/** Returns the text between the first `from` and the next `to`. */
function between(text: string, from: string, to: string): string {
  const start = text.indexOf(from)
  if (start < 0) throw new Error(`not found: ${from}`)
  const end = text.indexOf(to, start + from.length)
  return text.slice(start + from.length, end < 0 ? undefined : end)
}

/** Returns the names in the first cells of the tables of a section. */
function tabled(document: string, heading: string): string[] {
  return found(between(document, `${heading}\n`, '\n#'), /^\| `(\w+)` \|/gm)
}

/** Returns the members of an interface in a source file. */
function membersOf(path: string, name: string): string[] {
  const body = between(read(path), `interface ${name}`, '\n}')
  return found(body, /^ {2}(?:readonly )?(\w+)\??:/gm)
}

describe('the configuration pages list exactly what exists:', () => {
  const gateway = Object.keys(environmentSchema.shape).sort()
  const bindings = ['AUDIT_DB', 'AUDIT_QUEUE', 'ORIGIN']
  const ofAuditWorker = ['AUDIT_SIGNING_KEYS', 'RETENTION_DAYS']

  test('variables and bindings of the gateway', () => {
    expect(gateway).toContain('UPSTASH_REDIS_REST_URL')
    expect(gateway).toContain('ORIGIN')
    const declared = found(read('wrangler.toml'), /^binding = "(\w+)"$/gm)
    expect(declared).toEqual(bindings)
    const named = [
      ...tabled(configuration, '## Environment of the gateway'),
      ...tabled(configuration, '### Bindings'),
    ]
    expect(named.sort()).toEqual([...new Set([...gateway, ...bindings])].sort())
  })

  test('variables of the audit Worker', () => {
    expect(membersOf('src/runtimes/cloudflare/audit-worker.ts', 'AuditEnv')).toEqual([
      'AUDIT_DB',
      'AUDIT_EXPORT',
      ...ofAuditWorker,
    ])
    expect(tabled(configuration, '## Environment of the audit Worker')).toEqual(ofAuditWorker)
  })

  test('variables of npm start', () => {
    const settings = read('dev/start/settings.ts')
    const passed = found(between(settings, 'const PASSED_THROUGH', '] as const'), /'([A-Z_]+)'/g)
    const given = [...found(settings, /given\('([A-Z_]+)'\)/g), ...passed].sort()
    const own = tabled(configuration, '## Environment of `npm start`')
    expect([...own, ...gateway.filter((name) => name !== 'ORIGIN')].sort()).toEqual(given)
  })

  test('fields of an issuer', () => {
    const issuer = between(read('src/validators/issuer.ts'), 'const issuer = z', '.superRefine')
    // A preset is replaced by its fields before the schema.
    const fields = [...found(issuer, /^ {4}(\w+):/gm), 'preset'].sort()
    expect(tabled(configuration, '## Issuers')).toEqual(fields)
  })

  test('fields of a client', () => {
    const source = read('src/features/authorization-server/schemas/client.ts')
    const members = [
      ...found(between(source, 'const clientMembers', '\n}'), /^ {2}(\w+):/gm),
      ...found(between(source, 'const configuredClient', '.refine(({ length'), /^ {4}(\w+):/gm),
    ]
    expect(tabled(configuration, '## Clients')).toEqual([...new Set(members)].sort())
  })

  test.each([
    ['## Policy', 'PolicyDefinition'],
    ['## Limits', 'LimitDefinition'],
    ['## Routes', 'RouteDefinition'],
    ['### Routes to origins', 'OriginRouting'],
    ['## Origins', 'OriginDefinition'],
    ['## Tokens', 'TokensDefinition'],
    ['## Input', 'InputSchemas'],
    ['## Relations', 'RelationsDefinition'],
    ['## Required relations', 'RelationDemand'],
    ['## Inspection', 'InspectDefinition'],
    ['## Signatures', 'SignaturesDefinition'],
    ['## JSON-RPC', 'JsonRpcDefinition'],
    ['## MCP servers', 'McpDefinition'],
    ['### Tools of MCP servers', 'McpToolAccess'],
  ])('fields of the policy: %s', (heading, name) => {
    const elsewhere: Readonly<Record<string, string>> = {
      OriginRouting: 'src/origin/definition.ts',
      OriginDefinition: 'src/origin/definition.ts',
      TokensDefinition: 'src/policy/tokens.ts',
      RelationsDefinition: 'src/access/relations/definition.ts',
      RelationDemand: 'src/access/relations/definition.ts',
      InspectDefinition: 'src/inspection/definition.ts',
      SignaturesDefinition: 'src/features/signatures/definition.ts',
      JsonRpcDefinition: 'src/inspection/definition.ts',
      McpDefinition: 'src/features/mcp/definition.ts',
      McpToolAccess: 'src/features/mcp/definition.ts',
    }
    const members = membersOf(elsewhere[name] ?? 'src/policy/definition.ts', name)
    expect(members.length).toBeGreaterThan(2)
    expect(tabled(configuration, heading)).toEqual(members)
  })

  test.each(Object.entries(DEFAULT_TOKENS.exchangeLimits))(
    'the default limit of exchanges by %s',
    (name, { limit, windowSeconds }) => {
      const row = between(configuration, '| `exchangeLimits` |', '\n')
      expect(row).toContain(`\`${name}\``)
      expect(row).toContain(`\`{ limit: ${limit}, windowSeconds: ${windowSeconds} }\``)
    },
  )

  test('fields of the policy: ## Abuse', () => {
    const members = membersOf('src/access/abuse/definition.ts', 'AbuseDefinition')
    expect(members).toContain('authenticationFailures')
    expect(tabled(configuration, '## Abuse')).toEqual(members)
    const bans = membersOf('src/access/abuse/definition.ts', 'BanDefinition')
    expect(tabled(configuration, '## Bans')).toEqual(bans)
    for (const [name, value] of Object.entries(DEFAULT_BANS)) {
      const shown = typeof value === 'number' ? value.toLocaleString('en') : `\`${value}\``
      expect(configuration).toContain(`| \`${name}\` | ${shown} |`)
    }
    const { limit, windowSeconds, mode } = DEFAULT_FAILURES
    const failures = `{ limit: ${limit}, windowSeconds: ${windowSeconds}, mode: '${mode}' }`
    expect(configuration).toContain(failures)
    expect(configuration).toContain(`\`${DEFAULT_EXEMPT.join('`, `')}\` |`)
  })

  test('defaults of a route', () => {
    const shown = (value: number) => value.toLocaleString('en')
    expect(configuration).toContain(`| \`maxBodyBytes\` | ${shown(DEFAULT_MAX_BODY_BYTES)} |`)
    expect(configuration).toContain(`| \`originTimeoutMs\` | ${shown(DEFAULT_ORIGIN_TIMEOUT_MS)} |`)
  })
})

describe('docs/storage-schema.md lists exactly what exists:', () => {
  const names = found(read('src/redis/keys.ts'), /`\$\{prefix\}([a-z:-]+)/g)
  const prefixes = names.map((name) => DEFAULT_KEYS.prefix + name)

  test('Redis keys', () => {
    expect(prefixes).toContain('pc:revoked:')
    expect(found(storage, /^\| `(pc:[a-z:-]+)/gm)).toEqual(prefixes)
  })

  test('Redis keys in any document', () => {
    const mentioned = DOCUMENTS.flatMap((path) => found(read(path), /(pc:[\w:-]+)/g))
    const unknown = mentioned.filter((key) => !prefixes.some((prefix) => key.startsWith(prefix)))
    expect(unknown).toEqual([])
  })

  test('bans written by hand', async () => {
    for (const key of [
      await addressBanKey(DEFAULT_KEYS, '203.0.113.7'),
      await addressBanKey(DEFAULT_KEYS, '2001:db8:1:2::/64'),
      await subjectBanKey(DEFAULT_KEYS, 'https://idp.example.com', 'alice'),
    ])
      expect(storage).toContain(`SET ${key} `)
  })

  test('tables of D1 and their columns', () => {
    const migrations = filesBelow('migrations', '.sql').map(read).join('\n')
    const tables = found(migrations, /^CREATE TABLE IF NOT EXISTS (\w+)/gm)
    expect(tables).toContain('audit_events')
    expect(found(storage, /^### `(\w+)`/gm)).toEqual(tables)
    for (const table of tables) {
      const columns = between(migrations, `CREATE TABLE IF NOT EXISTS ${table} (`, '\n)')
      const added = found(migrations, new RegExp(`^ALTER TABLE ${table} ADD COLUMN (\\w+)`, 'gm'))
      const all = [...found(columns, /^ {2}(\w+) /gm), ...added].sort()
      expect(tabled(storage, `### \`${table}\``)).toEqual(all)
    }
  })
})

test('docs/errors.md lists every problem code with its status', () => {
  const problems = read('src/problems/problem.ts')
  const statuses = new Map(
    [...problems.matchAll(/^ {2}(\w+): \{ status: (\d+), title: /gm)].map(([, code, status]) => [
      code,
      status,
    ]),
  )
  expect(statuses.size).toBeGreaterThan(20)
  for (const path of filesBelow('src/features', '.ts'))
    for (const [, code, status] of read(path).matchAll(
      /^ {2}code: '(\w+)',\n {2}status: (\d+),$/gm,
    ))
      statuses.set(code, status)
  const listed = [
    ...read('docs/errors.md').matchAll(/^\| `(\w+)` \| (\d{3}) \| \S.* \| \S.* \|$/gm),
  ]
  expect(new Map(listed.map(([, code, status]) => [code, status]))).toEqual(statuses)
})

test('docs/architecture.md shows the stages in the order of the pipeline', () => {
  const stagesIn = (text: string) => inOrder(text, /stage\(\s*'(\w+)'/g)
  const app = read('src/gateway/create-gateway.ts')
  const guards = stagesIn(read('src/gateway/guards.ts'))
  const [before, after] = [between(app, '', 'const shared'), between(app, 'const shared', '\n}')]
  const inCode = ['requestId', 'audit', ...stagesIn(before), ...guards, ...stagesIn(after)]
  expect(inOrder(read('docs/architecture.md'), /^ {2}\| {2}(\w+) {2,}/gm)).toEqual(inCode)
})

test('docs/threat-model.md defines every row that it mentions, and tests prove each', () => {
  const rows = /\b([SR]\d\d)\b/g
  const defined = found(between(threats, '## Guarantees', '\n#'), rows)
  // A range such as "S12 to S17" names its ends.
  expect(found(threats, rows).filter((row) => !defined.includes(row))).toEqual([])
  const tests = filesBelow('test', '.test.ts').filter((path) => !path.startsWith('test/docs/'))
  const proven = found(tests.map(read).join('\n'), rows)
  expect(defined.filter((row) => !proven.includes(row))).toEqual([])
})

describe.each(DOCUMENTS)('%s', (path) => {
  const text = read(path)

  test('names files that exist', () => {
    const known = ['src', 'workers', 'cli', 'dev', 'examples', 'test'].flatMap((folder) =>
      filesBelow(folder, '.ts'),
    )
    const files = found(text, /`((?:[\w-]+\/)*[\w-]+\.ts)`/g)
    const there = (file: string) =>
      existsSync(join(ROOT, file)) ||
      existsSync(join(ROOT, dirname(path), file)) ||
      known.some((name) => name.endsWith(`/${file}`))
    expect(files.filter((file) => !there(file))).toEqual([])
  })
})
