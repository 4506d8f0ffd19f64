import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { cyclesOf, directoryOf, filesBelow, importsOf, roomOf } from './import-graph.ts'

const root = resolve(import.meta.dirname, '../..')
const MAX_LINES = 400
const MAX_ROOT_FILES = 6

const FEATURE = /^src\/features\/([a-z-]+)\//

/** The features that a feature uses: those that it needs, and pages or schemas of others. */
const USED_FEATURES = {
  'authorization-code': ['authorization-server', 'openapi', 'sign-in'],
  console: ['mcp', 'operators', 'sign-in'],
  languages: ['authorization-code', 'sign-in'],
  mcp: ['cors'],
  openapi: ['authorization-server'],
  operators: ['authorization-server', 'plans', 'sign-in'],
  signals: ['sign-in'],
}

/** Folders of adapters: each talks to one system outside the isolate. */
const ADAPTERS = /^src\/(?:redis|[a-z/-]+\/(?:redis|sql|r2|queue|decision-points))\//

const sources = [...filesBelow(root, 'src'), ...filesBelow(root, 'workers')]
const textOf = (file: string) => readFileSync(join(root, file), 'utf8')
const edgesOf = (files: readonly string[]) =>
  files.flatMap((from) => importsOf(root, from).map((to) => ({ from, to })))
const edges = edgesOf(sources)
const tools = [...filesBelow(root, 'cli'), ...filesBelow(root, 'dev')]

describe('the structure of the source', () => {
  test('the search finds the code and its imports', () => {
    expect(sources).toContain('src/gateway/create-gateway.ts')
    expect(importsOf(root, 'src/gateway/guards.ts')).toContain('src/middleware/admit.ts')
  })

  test('folders form a tree of dependencies without cycles, type imports included', () => {
    expect(cyclesOf(edges, roomOf)).toEqual([])
    expect(cyclesOf(edges, directoryOf)).toEqual([])
  })

  test('the folders in a feature form a tree too, which its index.ts composes', () => {
    const folderIn = (file: string) => (file.endsWith('/index.ts') ? file : dirname(file))
    const inFeatures = edges.filter(({ from, to }) => FEATURE.test(from) && FEATURE.test(to))
    expect(inFeatures.length).toBeGreaterThan(500)
    expect(cyclesOf(inFeatures, folderIn)).toEqual([])
  })

  test('files form no cycle of imports', () => {
    expect(cyclesOf(edges, (file) => file)).toEqual([])
  })

  test('the command line and the tools of development form a tree too', () => {
    const all = [...edges, ...edgesOf(tools)]
    expect(all.filter(({ from }) => from.startsWith('dev/')).length).toBeGreaterThan(100)
    expect(cyclesOf(all, (file) => file)).toEqual([])
    expect(cyclesOf(all, roomOf)).toEqual([])
  })

  test('the files of the benchmarks form no cycle', () => {
    const own = edgesOf(filesBelow(root, 'bench'))
    expect(own.length).toBeGreaterThan(100)
    expect(cyclesOf([...edges, ...edgesOf(tools), ...own], (file) => file)).toEqual([])
  })

  test('the benchmarks have at most 13,815 lines', () => {
    const lines = filesBelow(root, 'bench').map((file) => textOf(file).split('\n').length - 1)
    expect(lines.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(13_815)
  })

  test('a planted cycle between two folders is found, with the imports that close it', () => {
    const planted = {
      from: 'src/access/tokens/verifier.ts',
      to: 'src/access/admission/admission.ts',
    }
    const [cycle, ...others] = cyclesOf([...edges, planted], roomOf)
    expect(others).toEqual([])
    expect(cycle?.nodes).toEqual(
      expect.arrayContaining(['src/access/admission', 'src/access/tokens']),
    )
    expect(cycle?.imports).toContain(
      'src/access/tokens/verifier.ts > src/access/admission/admission.ts',
    )
  })

  test(`src has at most ${MAX_ROOT_FILES} files at its root`, () => {
    const files = sources.filter((file) => dirname(file) === 'src')
    expect(files.length).toBeLessThanOrEqual(MAX_ROOT_FILES)
  })

  test('no folder has a file of the same name beside it', () => {
    const folders = [...new Set(sources.map((file) => `${dirname(file)}.ts`))]
    expect(folders.filter((twin) => sources.includes(twin))).toEqual([])
  })

  test('only an entry point imports a feature, so that a policy can leave it out', () => {
    const isFeature = (file: string) => file.startsWith('src/features/')
    expect(edges.filter(({ to }) => isFeature(to)).length).toBeGreaterThan(0)
    const offenders = edges
      .filter(({ from, to }) => isFeature(to) && !isFeature(from) && dirname(from) !== 'src')
      .map(({ from, to }) => `${from} > ${to}`)
    expect(offenders).toEqual([])
  })

  test('a feature imports another one only if it is declared here', () => {
    const found = new Map<string, Set<string>>()
    for (const { from, to } of edges) {
      const [one, other] = [FEATURE.exec(from)?.[1], FEATURE.exec(to)?.[1]]
      if (one === undefined || other === undefined || one === other) continue
      found.set(one, (found.get(one) ?? new Set()).add(other))
    }
    const used = Object.fromEntries([...found].map(([name, others]) => [name, [...others].sort()]))
    expect(used).toEqual(USED_FEATURES)
  })

  test('no code casts a value to the type of a feature', () => {
    const cast =
      /^(?!import|export).*\bas (?:unknown as )?[A-Z]\w*(?:Feature|Cors|Mcp|Origins|Relations)\b/m
    expect(sources.filter((file) => cast.test(textOf(file)))).toEqual([])
  })

  test('only the gateway, the facade, features, the public surface, Workers, Node and other adapters import adapters', () => {
    const isAllowed = (file: string) =>
      /^src\/(?:(?:gateway|guard|features|runtimes)\/|[a-z]+\.ts$)/.test(file) ||
      ADAPTERS.test(file)
    const offenders = edges
      .filter(({ from, to }) => ADAPTERS.test(to) && !SHARED.has(to) && !isAllowed(from))
      .map(({ from, to }) => `${from} > ${to}`)
    expect(offenders).toEqual([])
  })

  test('modules that decide import neither Hono nor Node nor a Redis client', () => {
    const deciding = ['access', 'audit', 'inspection', 'observability', 'policy', 'validators']
    const offenders = sources.filter(
      (file) =>
        deciding.some((feature) => file.startsWith(`src/${feature}/`)) &&
        /from '(hono|node:|@upstash)/.test(textOf(file)) &&
        !ADAPTERS.test(file),
    )
    expect(offenders).toEqual([])
  })

  test('code that runs in a Worker imports nothing of Node', () => {
    const ofNode = sources.filter((file) => /from '(?:node:|undici'|ioredis')/.test(textOf(file)))
    expect(ofNode.length).toBeGreaterThan(0)
    const isOfNode = (file: string) => file.startsWith('src/runtimes/node/')
    expect(ofNode.filter((file) => !isOfNode(file))).toEqual([])
    const importers = sources.filter((file) => importsOf(root, file).some(isOfNode))
    expect(importers.filter((file) => !isOfNode(file))).toEqual([])
  })

  test('the command line uses the gateway through its API, and checks values with its schema', () => {
    const files = filesBelow(root, 'cli')
    expect(files.length).toBeGreaterThan(10)
    const shared = [
      'package.json',
      // `login` stores tokens as `npm start` stores secrets.
      'dev/private-file.ts',
      'src/errors.ts',
      'src/problems/mistake.ts',
      'src/suggestions/did-you-mean.ts',
      'src/validators/environment.ts',
    ]
    // `doctor` checks what the gateway needs of Redis.
    shared.push('src/redis/bounded-calls.ts', 'src/redis/rest.ts', 'src/redis/script.ts')
    shared.push('src/redis/connection.ts', 'src/runtimes/node/redis/resp.ts')
    // `redis import` moves keys as a gateway stores them.
    shared.push('src/runtimes/node/redis/import/import-keys.ts')
    shared.push('src/runtimes/node/environment/redis-url.ts')
    for (const part of ['audit', 'node', 'redis', 'server'])
      shared.push(`src/runtimes/node/environment/${part}-environment.ts`)
    shared.push('src/features/environment.ts')
    // `serve` loads the package of the project, and needs its types.
    shared.push('src/runtimes/node/index.ts', 'src/runtimes/node/other-runtime.ts')
    // Lists of events group those of a command as the console does.
    shared.push('src/audit/command-events.ts')
    // `doctor` names the callback that a provider must accept.
    shared.push('src/features/sign-in/callback.ts')
    // It logs in there with a code that does not exist, as the sign-in does with one that does.
    for (const part of ['github-endpoints', 'client-settings'])
      shared.push(`src/features/sign-in/${part}.ts`)
    shared.push('src/access/tokens/issuer-client-authentication.ts')
    shared.push('src/validators/configuration.ts')
    // `signals` asks a transmitter for the events that a gateway knows.
    for (const part of ['access-token', 'event-types', 'metadata-url', 'schema'])
      shared.push(`src/features/signals/${part}.ts`)
    // `audit verify` compares what queries read of a block with its events.
    shared.push('src/audit/blocks/line.ts', 'src/audit/blocks/search-columns.ts')
    // What a chain begins and ends with, and the characters that people do not see: the console says the same.
    shared.push('src/audit/chain-ends.ts', 'src/problems/visible.ts')
    // `idp` shows data.
    for (const data of ['auth-times', 'presets', 'sources'])
      shared.push(`src/identity-providers/${data}.ts`)
    // The commands that run a project on this machine share the code of `npm start`.
    // `keys` shares the code of `npm run keys`.
    const allowed = (imported: string) =>
      /^(?:cli|dev\/start|dev\/keys)\//.test(imported) || shared.includes(imported)
    // `idp doctor` judges tokens with the verifier, so that there is no second one.
    const judging = (file: string, imported: string) =>
      file.startsWith('cli/idp/') && /^src\/(access\/tokens|validators)\/[\w-]+\.ts$/.test(imported)
    // `policy`, `openapi` and `mcp` decide with the code of the gateway, for the same reason.
    const examining = (file: string, imported: string) =>
      /^cli\/(policy|openapi|mcp)\//.test(file) && imported.startsWith('src/')
    const others = files.flatMap((file) =>
      importsOf(root, file).filter(
        (path) => !allowed(path) && !judging(file, path) && !examining(file, path),
      ),
    )
    expect(others).toEqual([])
  })

  test('schemas use only what zod 4.0 has: later functions are in checks.ts and schema-parts.ts', () => {
    const later = /\bz\.(?:superRefine|describe|meta|exactOptional|int)\(/
    expect(sources.filter((file) => later.test(textOf(file)))).toEqual([
      'src/validators/schema-parts.ts',
    ])
  })

  test('middlewares have the types of Hono 4.6: only create-middleware.ts imports hono/factory', () => {
    const importing = sources.filter((file) => textOf(file).includes("'hono/factory'"))
    expect(importing).toEqual(['src/middleware/create-middleware.ts'])
  })

  test(`no file has more than ${MAX_LINES} lines`, () => {
    const code = [
      ...sources,
      ...['cli', 'dev', 'bench'].flatMap((folder) => filesBelow(root, folder)),
    ]
    const long = code
      .filter((file) => !file.endsWith('.generated.ts'))
      .map((file) => [file, textOf(file).split('\n').length - 1] as const)
      .filter(([, lines]) => lines > MAX_LINES)
    expect(long).toEqual([])
  })

  test('zod is imported as zod/mini, so that bundles have the small one', () => {
    const offenders = sources.filter((file) =>
      /from 'zod(?!\/(?:mini|v4\/core)')/.test(textOf(file)),
    )
    expect(offenders).toEqual(['src/validators/english.ts'])
  })
})

/** Names and formats of stored values: pure functions that features use to build their keys. */
const SHARED: ReadonlySet<string> = new Set([
  'src/redis/key-part.ts',
  'src/redis/keys.ts',
  'src/redis/reply.ts',
])
