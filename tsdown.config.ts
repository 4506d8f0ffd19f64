/** `npm run build`: the package in `dist`, a module for each subpath, and the command line. */
import { resolve } from 'node:path'
import { defineConfig, type Rolldown, type UserConfig } from 'tsdown'
import { compressed } from './dev/package/compressed.ts'
import { thirdPartyNotices } from './dev/package/notices.ts'
import { embedMaps, markPure, simplifyDeclarations } from './dev/package/plugins.ts'
import { subpaths } from './dev/package/subpaths.ts'

const shared: UserConfig = {
  format: 'esm',
  report: false,
  logLevel: 'warn',
  failOnWarn: true,
  checks: { bundlerTimings: false },
}

/**
 * Returns the chunk of a module that several subpaths share: one for what every guard of an app loads, and of the
 * other modules one for each folder of `src`, and for each feature and runtime. Folders have no cycles, and what
 * guards load imports nothing else, so chunks have none. One chunk for each combination of subpaths would be more
 * files than modules are worth.
 */
function chunkOf(module: string, context: Rolldown.ChunkingContext): string | null {
  if (/\/src\/.*\.d\.ts$/.test(module)) return 'types.d'
  if (guards.size === 0) addImported(GUARD, guards, context)
  if (module !== GUARD && guards.has(module)) return 'guards'
  if (UPSTASH_HTTP.test(module)) return 'redis'
  const [, inner, outer] = ROOM.exec(module) ?? []
  return inner ?? outer ?? null
}

const ENTRY = resolve(import.meta.dirname, 'cli/main.ts')

const GUARD = resolve(import.meta.dirname, 'src/hono/index.ts')

/** The modules that a guard of an app loads. */
const guards = new Set<string>()

/** The command line's own modules, and those that it imports statically: every command loads them. */
const core = new Set<string>()

/** Returns one chunk for what every command loads, so that a small module costs no file. */
function coreOf(module: string, context: Rolldown.ChunkingContext): string | null {
  if (core.size === 0) addImported(ENTRY, core, context)
  return core.has(module) ? 'core' : null
}

/** Adds a module, and those that it imports statically. */
function addImported(module: string, to: Set<string>, context: Rolldown.ChunkingContext): void {
  if (to.has(module)) return
  to.add(module)
  for (const imported of context.getModuleInfo(module)?.importedIds ?? [])
    addImported(imported, to, context)
}

const UPSTASH_HTTP = /@upstash\/redis\/chunk-\w+\.mjs$/

const ROOM = /\/src\/(?:(?:features|runtimes)\/([a-z-]+)|([a-z-]+))\/.*\.ts$/

export default defineConfig([
  {
    ...shared,
    entry: {
      ...Object.fromEntries(subpaths().map(({ built, source }) => [built, source])),
      // A thread that `portcullis/node` starts.
      'runtimes/node/audit-thread': 'src/runtimes/node/audit/thread.ts',
    },
    tsconfig: 'tsconfig.build.json',
    platform: 'neutral',
    target: 'es2023',
    // Packages stay imports, so that an app has one copy of each. The HTTP client of `@upstash/redis` is a part of the
    // package that has no entry of its own.
    deps: { neverBundle: true, alwaysBundle: [UPSTASH_HTTP], onlyBundle: ['@upstash/redis'] },
    dts: { sourcemap: false },
    plugins: [markPure(), embedMaps(), simplifyDeclarations()],
    sourcemap: true,
    // The other build writes and cleans these.
    clean: ['dist/**', '!dist/portcullis.mjs', '!dist/cli/**'],
    inputOptions: {
      preserveEntrySignatures: 'allow-extension',
      // It would drop the declarations of an entry.
      experimental: { chunkOptimization: false },
    },
    outputOptions: {
      chunkFileNames: 'chunks/[name]-[hash].js',
      // Documentation is in the declarations.
      comments: { jsdoc: false },
      codeSplitting: {
        groups: [{ name: chunkOf, minShareCount: 2 }],
        includeDependenciesRecursively: false,
      },
    },
    suppressWarnings: /TypeScript 7\.0 does not yet have a stable API/,
  },
  {
    ...shared,
    entry: { portcullis: 'cli/main.ts' },
    platform: 'node',
    target: 'node20',
    // Needs only Node: it starts fast, and its packages are not the consumer's.
    deps: {
      alwaysBundle: /./,
      onlyBundle: false,
      // A dependency of the package, and the consumer's own, which `portcullis dev` uses if there is
      // no other Redis.
      // The parser of OpenAPI references would load `undici` for URLs, which we read ourselves.
      neverBundle: ['ioredis', 'js-redis-server/core', 'oauth4webapi', 'undici'],
    },
    // What only some commands need is loaded by them.
    inputOptions: { preserveEntrySignatures: 'allow-extension' },
    outputOptions: {
      chunkFileNames: 'cli/[name].mjs',
      codeSplitting: {
        groups: [{ name: coreOf, minShareCount: 2 }],
        includeDependenciesRecursively: false,
      },
    },
    plugins: [
      thirdPartyNotices('cli/THIRD-PARTY.txt', ['node_modules/@upstash/redis']),
      // Two commands use it, and each project installs it: 0.4 MB in place of 2.8.
      compressed(/\/recheck\/lib\/browser\.js$/, 'cli/recheck.js.br'),
    ],
    copy: { from: 'dev/start/leash.mjs', to: 'dist/cli' },
    minify: true,
    dts: false,
    clean: ['dist/portcullis.mjs', 'dist/cli/**'],
  },
])
