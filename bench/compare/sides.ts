/** Both gateways: checked out and served side by side, each by its own process. */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from '../../dev/free-port.ts'
import { HOST, ROOT } from '../../dev/start/settings.ts'
import type { Shutdown } from '../../dev/start/shutdown.ts'
import { FLAGS } from '../node/contestants.ts'
import { openRedis } from '../node/costs.ts'
import { startServer } from '../processes/server.ts'
import type { Backends } from '../stack/backends.ts'
import { type Bundle, bundleWorker, REQUESTS_CONFIG } from '../stack/bundle.ts'
import { gatewayVariables, queueAddressOf } from '../stack/gateway.ts'
import { startWorkerd } from '../stack/workerd.ts'
import { BURN_PATH } from '../workers/compared.ts'
import type { CompareOptions } from './options.ts'

const SIDES = ['base', 'head'] as const
export type SideName = (typeof SIDES)[number]

export interface Side {
  readonly id: SideName
  readonly title: string
  readonly pid: number
  readonly url: string
  /** HTTP calls to Redis per request. Over RESP, calls are not counted. */
  readonly redisCalls: 0 | 1
  /** Sets the number of rounds of useless computation before each request; only in workerd. */
  burn(rounds: number): Promise<void>
  /** Resolves when every event is stored; only with a durable trail. */
  readonly settled?: () => Promise<void>
  close(): Promise<void>
}

export interface SideOptions {
  readonly backends: Backends
  readonly signingKeys: string
  /** Temporary directory below this checkout. */
  readonly directory: string
  readonly shutdown: Pick<Shutdown, 'signal' | 'defer'>
  readonly options: Pick<CompareOptions, 'runtime' | 'durable'>
}

/** Checks a revision out. Each call of the result serves its gateway with a new process, until `close` or `shutdown`. */
export async function prepareSide(
  name: SideName,
  revision: Revision,
  options: SideOptions,
): Promise<() => Promise<Side>> {
  const directory = join(options.directory, name)
  mkdirSync(directory)
  const tree = await checkOut(revision, join(directory, 'tree'), options.shutdown)
  const title = `${name.toUpperCase()} ${revision.name}`
  if (options.options.runtime === 'node')
    return async () => ({ id: name, title, ...(await startOnNode(name, tree, directory, options)) })
  const bundling = bundleOf(tree, directory)
  // An interrupted bundler would continue to write to the removed directory.
  options.shutdown.defer(async () => void (await Promise.allSettled([bundling])))
  const bundle = await bundling
  const start = () => startOnWorkerd(name, bundle, directory, options)
  return async () => ({ id: name, title, ...(await start()) })
}

type Served = Omit<Side, 'id' | 'title'>

async function startOnWorkerd(
  name: SideName,
  bundle: Bundle,
  directory: string,
  { backends, signingKeys, shutdown }: SideOptions,
): Promise<Served> {
  shutdown.signal.throwIfAborted()
  const workerd = await startWorkerd({
    bundle,
    directory,
    variables: gatewayVariables(backends, signingKeys),
    names: [name],
    queueAddress: queueAddressOf(backends),
  })
  shutdown.defer(workerd.close)
  const url = workerd.originOf(name)
  return {
    pid: workerd.pid,
    url,
    close: workerd.close,
    redisCalls: 1,
    async burn(rounds) {
      const answer = await (await fetch(`${url}${BURN_PATH}${rounds}`)).text()
      if (answer !== `${rounds}`) throw new Error(`${name} cannot be slowed down`)
    },
  }
}

/** Folders of the server on Node, the newest first. */
const SERVERS = ['src/runtimes/node/index.ts', 'src/node/index.ts']

/** Serves the sources of `tree` with this Node. Each start has its own keys in Redis and its own trail. */
async function startOnNode(
  name: SideName,
  tree: string,
  directory: string,
  { backends, signingKeys, shutdown, options: { durable } }: SideOptions,
): Promise<Served> {
  const server = SERVERS.find((path) => existsSync(join(tree, path)))
  if (server === undefined) throw new Error(`${name} has no server on Node`)
  const from = (...path: readonly string[]) => JSON.stringify(join(...path))
  const entry = join(directory, 'compared.ts')
  writeFileSync(
    entry,
    [
      // Not every revision sets flags of its own.
      `await import(${from(tree, 'cli', 'heap-flags.ts')}).then((own) => own.boundHeap(), () => {})`,
      `import { policyIn } from ${from(tree, 'dev', 'start', 'serve-node.ts')}`,
      `import { serve } from ${from(tree, server)}`,
      `import { roomy } from ${from(ROOT, 'bench', 'workers', 'policy.ts')}`,
      `const policy = roomy(await policyIn(${from(tree, 'portcullis.config.ts')}), '')`,
      `const exempt = [...policy.abuse.exempt, '${HOST}/32']`,
      'await serve({ policy: { ...policy, abuse: { ...policy.abuse, exempt } } })',
    ].join('\n'),
  )
  const port = await freePort()
  const start = crypto.randomUUID().slice(0, 18)
  const {
    UPSTASH_REDIS_REST_URL: _url,
    UPSTASH_REDIS_REST_TOKEN: _token,
    ...variables
  } = gatewayVariables(backends, signingKeys)
  const { url, pid, close } = await startServer({
    program: process.execPath,
    args: [...FLAGS, entry],
    env: {
      ...{ NODE_ENV: 'production', PORT: String(port), ...variables },
      ...{ REDIS_URL: backends.redis.directUrl, REDIS_PREFIX: `pc-${start}:` },
      ...(durable && { AUDIT_DATABASE: `sqlite:${join(directory, `${start}.db`)}` }),
    },
    port,
    directory,
  })
  shutdown.defer(close)
  shutdown.signal.throwIfAborted()
  const side = { pid, url, close, redisCalls: 0, burn: async () => {} } as const
  if (!durable) return side
  const redis = await openRedis(backends.redis.directUrl)
  const closeAll = async () => void (await Promise.all([redis.close(), close()]))
  return { ...side, close: closeAll, settled: redis.untilDrained }
}

/** Bundles the revision's gateway with this checkout's entry point. */
async function bundleOf(tree: string, directory: string): Promise<Bundle> {
  const from = (...path: readonly string[]) => JSON.stringify(join(...path))
  writeFileSync(
    join(directory, 'compared.ts'),
    [
      `import policy from ${from(tree, 'portcullis.config.ts')}`,
      `import * as revision from ${from(tree, 'src', 'index.ts')}`,
      `import { comparedWorker } from ${from(ROOT, 'bench', 'workers', 'compared.ts')}`,
      // Earlier revisions compose their services from the environment alone.
      'const { createGateway, composeServices = revision.createServices } = revision',
      'export default comparedWorker({ createGateway, composeServices, policy })',
    ].join('\n'),
  )
  const config = join(directory, 'compared.toml')
  const settings = readFileSync(join(ROOT, REQUESTS_CONFIG), 'utf8')
  writeFileSync(config, settings.replace('main = "requests.ts"', 'main = "compared.ts"'))
  return bundleWorker(relative(ROOT, config), directory)
}

export interface Revision {
  readonly name: string
  /** Twelve digits; undefined for a directory, which may have uncommitted changes. */
  readonly commit: string | undefined
  readonly directory: string | undefined
}

const COMMIT_DIGITS = 12
const run = promisify(execFile)

/** Finds a revision. Relative directories start at `cwd`. Throws an `Error` of one line. */
export async function findRevision(name: string, cwd: string): Promise<Revision> {
  if (/^[./]/.test(name)) {
    const directory = resolve(cwd, name)
    if (existsSync(join(directory, 'src', 'index.ts')))
      return { name, commit: undefined, directory }
    throw new Error(`${name} is not a checkout: it has no src/index.ts`)
  }
  try {
    const spec = `${name}^{commit}`
    const { stdout } = await git('rev-parse', '--verify', '--quiet', '--end-of-options', spec)
    return { name, commit: stdout.trim().slice(0, COMMIT_DIGITS), directory: undefined }
  } catch {
    throw new Error(`unknown revision ${name}`)
  }
}

/**
 * Returns the directory of a revision. A commit is checked out to `directory`, which must not exist,
 * and removed at shutdown. It uses the dependencies of this checkout, or installs its own if they
 * differ.
 */
async function checkOut(
  { commit, directory: named }: Revision,
  directory: string,
  shutdown: Pick<Shutdown, 'defer'>,
): Promise<string> {
  if (named !== undefined) return named
  if (commit === undefined) throw new Error('a revision has a commit or a directory')
  const added = git('worktree', 'add', '--detach', '--quiet', directory, commit)
  // An interrupted checkout would continue to write to the removed directory.
  shutdown.defer(async () => {
    await Promise.allSettled([added])
    await git('worktree', 'remove', '--force', directory)
  })
  await added
  if (lockedFor(directory) === lockedFor(ROOT))
    symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'))
  else {
    await run('npm', ['ci', '--ignore-scripts', '--omit=dev', '--no-audit', '--no-fund'], {
      cwd: directory,
    })
    linkPeers(directory)
  }
  return directory
}

/** Links the packages that apps install beside the product. In a checkout they are for development only. */
function linkPeers(directory: string): void {
  for (const name of ['hono', 'zod']) {
    const linked = join(directory, 'node_modules', name)
    if (!existsSync(linked)) symlinkSync(join(ROOT, 'node_modules', name), linked)
  }
}

interface Lock {
  readonly packages: Readonly<
    Record<string, { readonly dev?: boolean; readonly integrity?: string }>
  >
}

/** Returns the packages that can be part of a bundle, as text. */
function lockedFor(directory: string): string {
  const lock = JSON.parse(readFileSync(join(directory, 'package-lock.json'), 'utf8')) as Lock
  // The project and its workspaces have no checksum.
  const bundled = Object.entries(lock.packages).filter(
    ([, { dev, integrity }]) => integrity && !dev,
  )
  return JSON.stringify(bundled.map(([path, { integrity }]) => [path, integrity]).toSorted())
}

function git(...args: readonly string[]) {
  return run('git', args, { cwd: ROOT })
}
