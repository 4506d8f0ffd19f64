import { tmpdir } from 'node:os'
import { join, matchesGlob, relative } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

// Real processes start and stop in these tests; on a busy machine that takes a while.
const shared = {
  // The files of a worker share the modules that they import. Loading the modules anew for each file
  // takes longer than the tests. So a test must restore what it changes, such as the clock.
  isolate: false,
  // A test that takes 45 s with two cores to itself has time on a machine that is three times slower.
  testTimeout: 180_000,
  hookTimeout: 360_000,
  teardownTimeout: 60_000,
  // What is polled comes, or never does: how soon is no claim of any test.
  expect: { poll: { timeout: 60_000 } },
  env: {
    // Hundreds of processes load the same code: wrangler's, the command line's.
    NODE_COMPILE_CACHE: join(tmpdir(), 'portcullis-compile-cache'),
    // For Workers in the process of a test: no download of `Request.cf`, and no progress.
    CLOUDFLARE_CF_FETCH_ENABLED: 'false',
    WRANGLER_LOG: 'error',
  },
}

/** `portcullis` is the source of this checkout, not its last build. */
const resolve = { tsconfigPaths: true }

/**
 * Tests that start many processes, or repeat an experiment many times. `npm test` leaves them out, so that
 * it answers within minutes; `npm run test:all` runs them, and so does continuous integration.
 */
const SLOW = 'test/**/*.slow.test.ts'

/** Tests of load and measurements. They wait most of the time, and would disturb each other. */
const BENCH = ['test/bench/**/*.test.ts']

/** Tests that measure the heap, which must not contain garbage of other files. */
const HEAP = ['test/access/tokens/token-cache.test.ts', 'test/runtimes/node/reload-memory.test.ts']

/**
 * Tests that repeat an experiment more often, or with more variants, in `npm run test:long`, which sets
 * `LONG=1`: see `test/harness/long.ts`. Continuous integration runs the smaller versions.
 */
const LONG = [
  'test/access/admission/redis/exact-lease.slow.test.ts',
  'test/access/admission/redis/exact-script.slow.test.ts',
  'test/access/admission/redis/lanes.slow.test.ts',
  'test/access/admission/redis/reference-script.test.ts',
  'test/access/admission/throttle.slow.test.ts',
  'test/access/relations/check/oracle.slow.test.ts',
  'test/access/relations/check/well-founded.test.ts',
  'test/access/relations/decision-points/agreement.test.ts',
  'test/access/relations/model/agreement.test.ts',
  'test/access/relations/tuples/ids.slow.test.ts',
  'test/access/relations/tuples/tenants.test.ts',
  'test/access/tokens/issuer-rules.test.ts',
  'test/access/tokens/key-rotation.test.ts',
  'test/audit/blocks.slow.test.ts',
  'test/audit/chain.slow.test.ts',
  'test/audit/erasure.slow.test.ts',
  'test/audit/export.slow.test.ts',
  'test/audit/process.slow.test.ts',
  'test/bench/compare.test.ts',
  'test/bench/record/run.test.ts',
  'test/bench/run.test.ts',
  'test/bench/simulate.test.ts',
  'test/cli/audit.slow.test.ts',
  'test/cli/completion.slow.test.ts',
  'test/cli/deploy/checkout.slow.test.ts',
  'test/cli/deploy/deploy.slow.test.ts',
  'test/cli/doctor.slow.test.ts',
  'test/cli/explain.slow.test.ts',
  'test/cli/idp-doctor.slow.test.ts',
  'test/cli/install.slow.test.ts',
  'test/cli/live/terminal.slow.test.ts',
  'test/cli/operating.slow.test.ts',
  'test/cli/patterns/imported.slow.test.ts',
  'test/cli/patterns/shipped.slow.test.ts',
  'test/cli/policy/command.slow.test.ts',
  'test/cli/policy/replay.slow.test.ts',
  'test/cli/relations.slow.test.ts',
  'test/cli/serve-elsewhere.slow.test.ts',
  'test/cli/serve-reload.slow.test.ts',
  'test/cli/serve-workers.slow.test.ts',
  'test/cli/serve.slow.test.ts',
  'test/cli/usage.slow.test.ts',
  'test/create/node.slow.test.ts',
  'test/dev/model.slow.test.ts',
  'test/dev/start/keys.slow.test.ts',
  'test/dev/start/start-node.slow.test.ts',
  'test/docs/commands-first.slow.test.ts',
  'test/docs/commands.slow.test.ts',
  'test/features/authorization-code/code-login.slow.test.ts',
  'test/features/console/pages.slow.test.ts',
  'test/features/openapi/docs.slow.test.ts',
  'test/features/sign-in/browser.slow.test.ts',
  'test/features/sign-in/pages.slow.test.ts',
  'test/features/signals/gateways.slow.test.ts',
  'test/features/signatures/multipart.test.ts',
  'test/gateway/explanation/effects.slow.test.ts',
  'test/guard/frameworks.slow.test.ts',
  'test/inspection/json-rpc.test.ts',
  'test/ops/nginx.slow.test.ts',
  'test/ops/several-gateways.slow.test.ts',
  'test/package/consumers.slow.test.ts',
  'test/runtimes/node/transport-fuzz.slow.test.ts',
  'test/runtimes/table.slow.test.ts',
]

/**
 * Tests that only `npm run test:long` runs. The first four put a load on gateways whose figures, or whose time, depend on
 * what else the machine does. The others are about tools, not about what a gateway admits, and another file runs the
 * same mechanism in continuous integration.
 */
const ONLY_LONG = [
  'test/isolate/bursts.slow.test.ts',
  'test/features/operators/schemathesis.slow.test.ts',
  'test/bench/simulate-real.test.ts',
  'test/bench/soak.test.ts',
  // The commands of documents: `commands-first.slow.test.ts` runs those of the README.
  'test/docs/commands-features.slow.test.ts',
  'test/docs/commands-operation.slow.test.ts',
  'test/docs/site.slow.test.ts',
  'test/docs/tutorial.slow.test.ts',
  // Created projects: `node.slow.test.ts` creates one.
  'test/create/checkout.slow.test.ts',
  'test/create/flags.slow.test.ts',
  'test/create/gateway.slow.test.ts',
  'test/create/mcp.slow.test.ts',
  'test/create/middleware.slow.test.ts',
  // The development server: `start-node.slow.test.ts` starts one, and so do the commands of the README.
  'test/dev/start/deploy.slow.test.ts',
  'test/dev/start/other-policy.slow.test.ts',
  'test/dev/start/refusals.slow.test.ts',
  'test/dev/start/start.slow.test.ts',
  'test/dev/start/troubles.slow.test.ts',
  // The command line: `deploy.slow.test.ts` deploys a gateway, `doctor.slow.test.ts` and `idp-doctor.slow.test.ts`
  // find mistakes.
  'test/cli/deploy/app.slow.test.ts',
  'test/cli/idp.slow.test.ts',
  'test/cli/idp-doctor-provider.slow.test.ts',
  'test/cli/redis.slow.test.ts',
  'test/dev/upstash-rest-cli.slow.test.ts',
  // The suite of MCP, which npm and pip install: `clients.slow.test.ts` and `sdk.slow.test.ts` run clients.
  'test/features/mcp/conformance.slow.test.ts',
]

/**
 * Tests of tools, which start programs and wait for them. `npm run test:all` runs them one after the other, with the
 * modes `early` and `late`: see `dev/test-all.ts`.
 */
const LATE = ['cli/deploy', 'create', 'docs', 'package'].map(
  (folder) => `test/${folder}/**/*.test.ts`,
)

/** Black-box tests that continuous integration runs on a cluster. `npm run test:long` runs all of them there. */
const ON_CLUSTER = ['admission', 'admission-references']
/** They send malformed replies of REST, or let one gateway of a stack lose its Redis: see CONTRIBUTING.md. */
const NOT_ON_CLUSTER = ['outages', 'redis-faults', 'revocation-bound']
const blackboxFiles = (names: readonly string[]) =>
  names.map((name) => `test/blackbox/${name}.test.ts`)

/** Starts {@link SLOW} first. A long file that starts last would leave the other workers idle. */
class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isSlow = ({ moduleId }: TestSpecification) =>
      matchesGlob(relative(import.meta.dirname, moduleId), SLOW)
    return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))]
  }
}

function filesOfParts(mode: string): string[] {
  if (mode === 'long') return [...LONG, ...ONLY_LONG]
  return mode === 'late' ? LATE : ['test/**/*.test.ts']
}

export default defineConfig(({ mode }) => {
  const isLong = mode === 'long'
  const env = { ...shared.env, ...(isLong && { LONG: '1' }) }
  return {
    test: {
      // Tests wait for processes and timers much of the time: on two cores, four files run at once, beside
      // one file of another process of `npm run test:all`. With five, deadlines of the product passed on a slow machine.
      maxWorkers: 4,
      sequence: { sequencer: SlowFirst },
      // Who repeats `npm test` has changed few modules. The others need no transformation.
      experimental: { fsModuleCache: mode === 'quick' },
      projects: [
        {
          resolve,
          test: {
            ...shared,
            env,
            name: 'parts',
            setupFiles: ['test/harness/process-state.ts'],
            include: filesOfParts(mode),
            exclude: [
              'test/blackbox/**',
              'node_modules/**',
              ...HEAP,
              ...BENCH,
              ...(isLong ? [] : ONLY_LONG),
              ...(mode === 'quick' ? [SLOW] : []),
              ...(mode === 'early' ? LATE : []),
            ],
          },
        },
        { resolve, test: { ...shared, name: 'heap', include: HEAP, isolate: true } },
        {
          resolve,
          test: {
            ...shared,
            env,
            name: 'bench',
            include: isLong
              ? [...LONG, ...ONLY_LONG].filter((path) => path.startsWith('test/bench/'))
              : BENCH,
            exclude: isLong ? [] : ONLY_LONG,
            fileParallelism: false,
            sequence: { groupOrder: 2 },
          },
        },
        // The same files against each runtime, and on a cluster. `global-setup.ts` starts the gateways.
        ...['blackbox', 'blackbox-node', 'blackbox-cluster'].map((name) => ({
          resolve,
          test: {
            ...shared,
            env,
            name,
            include:
              name === 'blackbox-cluster' && !isLong
                ? blackboxFiles(ON_CLUSTER)
                : ['test/blackbox/**/*.test.ts'],
            exclude: name === 'blackbox-cluster' ? blackboxFiles(NOT_ON_CLUSTER) : [],
            globalSetup: ['test/blackbox/global-setup.ts'],
            // One stack, and tests that stop parts of it: one file at a time.
            fileParallelism: false,
            sequence: { groupOrder: 1 },
          },
        })),
      ],
    },
  }
})
