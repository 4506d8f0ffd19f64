/** The table of consumers: projects of every supported kind install, compile, build and run the package. */
import { existsSync, readFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { createIssuer, type Issuer } from 'portcullis/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startWrangler } from '../../dev/start/wrangler.ts'
import { makeTarballs, type Tarballs } from '../create/tarballs.ts'
import { faultOf, relativeLinks } from '../docs/link-faults.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { describeInLong, IS_LONG, testInLong, usualOrLong } from '../harness/long.ts'
import { freePort, ROOT } from '../harness/process.ts'
import { redisVars, startTestRedis, type TestRedis } from '../harness/redis.ts'
import { type Consumer, createConsumer } from './consumer.ts'
import { createTable } from './table.ts'

const COMPILERS = ['5.6', '5', '6', '7'] as const
type Compiler = (typeof COMPILERS)[number]
const NODES = ['20', '22', '24'] as const
/** In each run, the oldest version and the newest one. */
const USUAL_NODES = ['20', '24'] as const
const BINARY = `node-${process.platform}-${process.arch}`

/**
 * Tools, by their names in a project. Each run uses those of this checkout, which are exact versions; a long
 * run installs the newest ones, which takes most of its time.
 */
const TOOLS: Readonly<Record<string, string>> = {
  'typescript-7': 'npm:typescript@7',
  'node-24': `npm:${BINARY}@24`,
  'workers-types-5': 'npm:@cloudflare/workers-types@5',
  esbuild: '*',
  vite: '*',
  vitest: '*',
  wrangler: '*',
}
const OF_CHECKOUT: Readonly<Record<string, string>> = {
  'typescript-7': 'typescript',
  'node-24': 'node',
  'workers-types-5': '@cloudflare/workers-types',
}

const DOM = { lib: ['es2022', 'dom', 'dom.iterable'], types: [] }
const ES = ['es2022']

/** Versions of the peers: the newest ones, and the oldest ones that package.json allows. */
const NEWEST = { hono: '4', zod: '4' }
const OLDEST = { hono: '4.6.0', zod: '4.0.0' }

/** Ends a request that wrangler does not serve, so that the failure shows what wrangler printed. */
const RESPONSE_TIMEOUT_MS = 30_000
/** The same for wrangler itself, within the time of a test. */
const START_TIMEOUT_MS = 50_000

/** A gateway on Cloudflare Workers. */
const GATEWAY = `import { gatewayWorker } from 'portcullis/cloudflare'
import policy from './policy.ts'
export default gatewayWorker(policy)
`

let tarballs: Tarballs
let redis: TestRedis
let newest: Consumer
/** Of a long run. */
let oldest: Consumer
const table = createTable()

beforeAll(async () => {
  redis = await startTestRedis()
  tarballs = await makeTarballs()
  const shared = {
    portcullis: `file:${tarballs.portcullis}`,
    // An optional peer, of `portcullis/upstash`.
    '@upstash/ratelimit': '2',
  }
  const compilers = usualOrLong<readonly Compiler[]>([], ['5.6', '5', '6']).map((version) => [
    `typescript-${version}`,
    `npm:typescript@${version}`,
  ])
  const nodes = usualOrLong(['20'], ['20', '22']).map((version) => [
    `node-${version}`,
    `npm:${BINARY}@${version}`,
  ])
  const newestOf = createConsumer(tarballs.folder, 'newest', {
    ...shared,
    ...NEWEST,
    '@hono/node-server': '*',
    ...Object.fromEntries([...compilers, ...nodes]),
    '@types/node': '22',
    ...usualOrLong({}, { ...TOOLS, 'workers-types-4': 'npm:@cloudflare/workers-types@4' }),
  })
  const oldestOf = IS_LONG
    ? createConsumer(tarballs.folder, 'oldest', {
        ...shared,
        ...OLDEST,
        '@hono/node-server': '1',
        'node-24': `npm:${BINARY}@24`,
      })
    : undefined
  const made = await Promise.all([newestOf, oldestOf])
  newest = made[0]
  if (made[1] !== undefined) oldest = made[1]
  const consumers = made.filter((one) => one !== undefined)
  for (const consumer of consumers) trees.set(consumer, await copiesIn(consumer))
  // After the list of packages: links are not installed.
  if (!IS_LONG)
    for (const name of Object.keys(TOOLS)) await newest.link(name, OF_CHECKOUT[name] ?? name)
  const app = await readFile(join(ROOT, 'examples/hono/app.ts'), 'utf8')
  // On a busy machine Redis may answer later than the default deadline.
  const patientApp = app.replace(/(redis: \{[^}]*) \}/, '$1, timeoutMs: 5_000 }')
  expect(patientApp).not.toBe(app)
  for (const consumer of consumers) {
    await consumer.write('src/app.ts', patientApp)
    await consumer.copy('examples/testing/policy.ts', 'src/policy.ts')
    await consumer.copy('test/package/wrong-options.ts', 'src/wrong-options.ts')
    await consumer.copy('test/package/run.mjs', 'run.mjs')
    await consumer.write('src/subpaths.ts', await subpathsOf(consumer))
  }
  await newest.copy('examples', 'examples')
  await newest.copy('examples/middleware/worker.ts', 'src/worker.ts')
  await newest.copy('portcullis.model.json', 'portcullis.model.json')
}, 600_000)

afterAll(async () => {
  console.log(table.text())
  await tarballs?.close()
  await redis?.close()
})

/** Returns a module that imports every subpath. */
async function subpathsOf({ path }: Consumer): Promise<string> {
  const manifest = await readFile(join(path, 'node_modules/portcullis/package.json'), 'utf8')
  const { exports } = JSON.parse(manifest) as { exports: Record<string, { types?: string }> }
  return Object.entries(exports)
    .filter(([, { types }]) => types !== undefined)
    .map(([subpath], index) => {
      const name = `subpath${index}`
      return `import * as ${name} from 'portcullis${subpath.slice(1)}'\nexport { ${name} }\n`
    })
    .join('')
}

interface Compilation {
  readonly version?: Compiler
  readonly consumer?: Consumer
  readonly resolution?: 'bundler' | 'node16' | 'nodenext'
  readonly files?: readonly string[]
  /** Overrides of the compiler's options. */
  readonly options?: Readonly<Record<string, unknown>>
}

/** What each compilation checks. */
const FILES = ['subpaths', 'app', 'policy', 'wrong-options'] as const

let compilations = 0

/** Compiles without `skipLibCheck`. Returns the folder of the emitted JavaScript, if any. */
async function compile({
  version = '7',
  consumer = newest,
  resolution = 'nodenext',
  files = FILES,
  options = {},
}: Compilation): Promise<string> {
  compilations += 1
  const config = `tsconfig.${compilations}.json`
  const outDir = `out/${compilations}`
  await consumer.write(config, {
    compilerOptions: {
      target: 'es2022',
      module: resolution === 'bundler' ? 'esnext' : resolution,
      moduleResolution: resolution,
      strict: true,
      skipLibCheck: false,
      rootDir: 'src',
      outDir,
      ...DOM,
      ...options,
    },
    files: files.map((file) => `src/${file}.ts`),
  })
  const compiler = join(newest.path, `node_modules/typescript-${version}/bin/tsc`)
  await consumer.run(['node', compiler, '-p', config])
  return outDir
}

/** Runs the app and the policy in a folder of JavaScript. */
function runIn(consumer: Consumer, folder: string, node = 'node'): Promise<string> {
  const files = [`./${folder}/app.js`, `./${folder}/policy.js`] as const
  return consumer.run([node, 'run.mjs', ...files], redisVars(redis))
}

const trees = new Map<Consumer, readonly string[]>()

/** Returns the names of the copies of the package and its peers in a project. */
async function copiesIn(consumer: Consumer): Promise<readonly string[]> {
  const list = ['npm', 'ls', '--all', '--parseable', 'portcullis', 'hono', 'zod'] as const
  const copies = (await consumer.run(list)).trim().split('\n')
  return copies.map((path) => basename(path)).sort()
}

/** Checks that the peers are in their range, and that there is one copy of each. */
const installed = (of: () => Consumer) => async () => {
  expect(trees.get(of())).toEqual(['hono', 'portcullis', 'zod'])
}

const emitted = new Map<string, Promise<string>>()

/** Compiles once for all rows with the same compilation. */
function compileOnce(compilation: Compilation): Promise<string> {
  const { consumer = newest, ...rest } = compilation
  const defaults: Compilation = { version: '7', resolution: 'nodenext', options: {} }
  const key = JSON.stringify([consumer.path, { ...defaults, ...rest }])
  const folder = emitted.get(key) ?? compile(compilation)
  emitted.set(key, folder)
  return folder
}

/** Checks, emits and runs with one compilation. */
function steps(of: () => Consumer, compilation: Compilation, node?: string) {
  let folder = ''
  return {
    install: installed(of),
    async types() {
      folder = await compileOnce({ ...compilation, consumer: of() })
    },
    async build() {
      if (!existsSync(join(of().path, folder, 'app.js'))) throw new Error('nothing was emitted')
    },
    run: () => runIn(of(), folder, node),
  }
}

test('each link of the installed documents leads to a file and a heading of the package', async () => {
  const root = join(newest.path, 'node_modules/portcullis')
  const paths = await readdir(root, { recursive: true })
  const documents = paths.filter((path) => path.endsWith('.md'))
  expect(documents).toEqual(expect.arrayContaining(['README.md', 'docs/configuration.md']))
  const faults = documents.flatMap((document) => {
    const links = relativeLinks(readFileSync(join(root, document), 'utf8'))
    return links.map((target) => faultOf(document, target, root)).filter(Boolean)
  })
  expect(faults).toEqual([])
})

describe('TypeScript', () => {
  const resolutions = ['bundler', 'node16', 'nodenext'] as const
  type Resolution = (typeof resolutions)[number]
  /** In each run: the newest compiler, which is the fastest. */
  const all = usualOrLong<readonly (readonly [Compiler, Resolution])[]>(
    [['7', 'nodenext']],
    COMPILERS.flatMap((version) => resolutions.map((resolution) => [version, resolution] as const)),
  )

  // The declarations of newer versions of Hono need TypeScript 5.7; see the proofs below.
  test.each(all)('TypeScript %s with moduleResolution %s', (version, resolution) => {
    const isOld = version === '5.6'
    return table.row(
      `TypeScript ${version}, ${resolution}${isOld ? `, hono ${OLDEST.hono}` : ''}`,
      steps(() => (isOld ? oldest : newest), { version, resolution }),
    )
  })

  testInLong('TypeScript 5.6 with the newest Hono', () =>
    table.row(
      'TypeScript 5.6, newest hono, skipLibCheck',
      steps(() => newest, { version: '5.6', options: { skipLibCheck: true } }),
    ),
  )
})

describeInLong('platforms', () => {
  type Platform = readonly [name: string, options: NonNullable<Compilation['options']>]
  const platforms: readonly Platform[] = [
    ['lib: dom', {}],
    ['@cloudflare/workers-types 4', { lib: ES, types: ['workers-types-4'] }],
    ['only @types/node', { lib: ES, types: ['node'] }],
    ['no platform, skipLibCheck', { lib: ES, types: [], skipLibCheck: true }],
    // A superset of `lib: dom`.
    ['the default libraries of the compiler', { lib: undefined, types: [] }],
    // In each run, with the Worker below.
    ['@cloudflare/workers-types 5', { lib: ES, types: ['workers-types-5'] }],
  ]
  test.each(platforms)('%s', async (name, options) => {
    for (const version of ['5', '7'] as const)
      await table.row(`${name}, TypeScript ${version}`, {
        types: () => compileOnce({ version, options }),
      })
  })
})

test('a Worker of single middlewares, and all modules, with @cloudflare/workers-types 5', () =>
  table.row('examples/middleware, @cloudflare/workers-types 5', {
    types: () => {
      const options = { lib: ES, types: ['workers-types-5'], noEmit: true }
      return compile({ files: [...FILES, 'worker'], options })
    },
  }))

describeInLong('declarations of other packages that fail without ours', () => {
  async function errorsOf(imported: string, given: Compilation): Promise<string> {
    const compilation: Compilation = { version: '7', ...given }
    const consumer = compilation.consumer ?? newest
    const file = `only-${imported.replace(/\W/g, '-')}`
    await consumer.write(`src/${file}.ts`, `import '${imported}'\n`)
    return compile({ ...compilation, files: [file] }).then(() => '', String)
  }

  type Proof = readonly [name: string, imported: string, message: RegExp, given: Compilation]
  const proofs: readonly Proof[] = [
    ['hono without a platform', 'hono', /Cannot find name 'Re/, { options: { lib: ES } }],
    ['zod without a platform', 'zod', /Cannot find name 'URL'/, { options: { lib: ES } }],
    ['the newest hono with TypeScript 5.6', 'hono', /Uint8Array/, { version: '5.6' }],
  ]
  test.each(proofs)('%s', async (_, imported, message, compilation) => {
    const errors = await errorsOf(imported, compilation)
    expect(errors).toMatch(message)
    expect(errors).not.toContain('portcullis/')
  })

  test('the oldest hono with only the types of Node', async () => {
    await oldest.copy('node_modules/@types/node', 'node_modules/@types/node')
    const options = { lib: ES, types: ['node'] }
    expect(await errorsOf('hono', { consumer: oldest, options })).toMatch(/RequestInfo/)
  })
})

describe('versions', () => {
  testInLong('the oldest hono and zod', () =>
    table.row(
      `hono ${OLDEST.hono} and zod ${OLDEST.zod}`,
      steps(() => oldest, { version: '5' }),
    ),
  )

  test.each(usualOrLong<readonly string[]>(USUAL_NODES, NODES))('Node %s', (version) =>
    table.row(`Node ${version}, @hono/node-server`, {
      ...steps(() => newest, {}, `node_modules/node-${version}/bin/node`),
    }),
  )
})

describe('bundlers', () => {
  const entries = ['src/app.ts', 'src/policy.ts']

  test('esbuild', () =>
    table.row('esbuild', {
      install: installed(() => newest),
      build: () =>
        newest.run([
          'node_modules/.bin/esbuild',
          ...[...entries, '--bundle', '--format=esm', '--platform=node', '--outdir=out/esbuild'],
        ]),
      run: () => runIn(newest, 'out/esbuild'),
    }))

  test('esbuild, without modules of Node, as in a Worker', () =>
    table.row('esbuild for Workers', {
      install: installed(() => newest),
      async build() {
        await newest.write('src/gateway.js', GATEWAY)
        await newest.run([
          'node_modules/.bin/esbuild',
          ...['src/app.ts', 'src/gateway.js', '--bundle', '--format=esm'],
          ...['--platform=browser', '--outdir=out/worker'],
        ])
      },
    }))

  testInLong('vite', () =>
    table.row('vite', {
      install: installed(() => newest),
      async build() {
        await newest.write(
          'vite.config.js',
          `export default { ssr: { noExternal: true }, build: { outDir: 'out/vite', rolldownOptions: {
            input: ${JSON.stringify(entries)}, output: { entryFileNames: '[name].js' } } } }`,
        )
        await newest.run(['node_modules/.bin/vite', 'build', '--ssr', '--logLevel', 'warn'])
      },
      run: () => runIn(newest, 'out/vite'),
    }),
  )

  // In each run, a new project runs its tests in vitest: test/create/node.slow.test.ts.
  testInLong('vitest', () =>
    table.row('vitest', {
      install: installed(() => newest),
      run: () => newest.run(['node_modules/.bin/vitest', 'run', '--dir', 'examples/testing']),
    }),
  )
})

describe('wrangler', () => {
  const settings = { compatibility_date: '2026-11-17' }
  // Offline, wrangler would wait for the look-up of Request.cf.
  const env = { WRANGLER_SEND_METRICS: 'false', CLOUDFLARE_CF_FETCH_ENABLED: 'false' }
  let issuer: Issuer | undefined
  let provider: TestServer
  beforeAll(async () => {
    provider = await startHttpServer(async ({ url = '' }, response) => {
      const document = await issuer?.fetch(new URL(url, provider.url))
      response.writeHead(document?.status ?? 500, { 'content-type': 'application/json' })
      response.end(await document?.text())
    })
    issuer = await createIssuer({ issuer: provider.url, audience: 'https://notes.example.com' })
    await newest.write('src/gateway.js', GATEWAY)
  })
  afterAll(() => provider?.close())

  testInLong.each(['app.ts', 'gateway.js'])('dry run of %s', (main) =>
    table.row(`wrangler deploy --dry-run, ${main}`, {
      install: installed(() => newest),
      async build() {
        await newest.write('wrangler.json', { name: 'consumer', main: `src/${main}`, ...settings })
        await newest.run(
          ['node_modules/.bin/wrangler', 'deploy', '--dry-run', '-c', 'wrangler.json'],
          env,
        )
      },
    }),
  )

  testInLong('one request to the app in wrangler dev', () =>
    table.row('wrangler dev, app.ts', {
      install: installed(() => newest),
      async run() {
        const vars = { ...redisVars(redis), ISSUER: provider.url }
        await newest.write('dev.json', { name: 'consumer', main: 'src/app.ts', ...settings, vars })
        const port = String(await freePort())
        const address = ['--ip', '127.0.0.1', '--port', port, '--inspector-port', '0']
        const worker = startWrangler(['dev', '-c', 'dev.json', ...address], newest.path, {
          root: newest.path,
          wrangler: join(newest.path, 'node_modules/wrangler/bin/wrangler.js'),
        })
        try {
          await Promise.race([
            new Promise<void>((resolve) =>
              worker.follow((line) => line.includes('Ready on') && resolve()),
            ),
            worker.ended.then(() => Promise.reject(new Error(worker.lines().join('\n')))),
            setTimeout(START_TIMEOUT_MS).then(() =>
              Promise.reject(new Error(`wrangler dev is not ready: ${worker.lines().join('\n')}`)),
            ),
          ])
          const { status } = await fetch(`http://127.0.0.1:${port}/notes`, {
            headers: { authorization: `Bearer ${await issuer?.token({ roles: ['reader'] })}` },
            signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS),
          }).catch((cause) => Promise.reject(new Error(worker.lines().join('\n'), { cause })))
          expect(status).toBe(200)
        } finally {
          await worker.stop()
        }
      },
    }),
  )
})

describe('examples', () => {
  test.each([
    ['books/policy.ts'],
    ['configuration/policy.ts'],
    ['mcp/policy.ts'],
    ['minimal/policy.ts'],
    ['middleware/worker.ts'],
    ['hono/node.ts'],
    ['testing/issuer.ts'],
  ])('%s', (file) =>
    table.row(`examples/${file}`, {
      async build() {
        const output = `--outfile=out/examples/${file.replace('.ts', '.js')}`
        const format = [
          '--bundle',
          '--format=esm',
          '--platform=node',
          '--packages=external',
        ] as const
        await newest.run(['node_modules/.bin/esbuild', `examples/${file}`, ...format, output])
      },
      async run() {
        const built = `./out/examples/${file.replace('.ts', '.js')}`
        const script = `await import('${built}'); process.exit(0)`
        await newest.run(['node', '--input-type=module', '-e', script], { PORT: '0' })
      },
    }),
  )
})
