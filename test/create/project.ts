/** A project that `npm create portcullis` writes, and its processes. */
import { mkdir, readFile, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Command, type Outcome, runIn } from '../dev/start/checkout.ts'
import { descendantsOf } from '../dev/start/processes.ts'
import { blocksOf } from '../docs/blocks.ts'
import { freePort, ROOT } from '../harness/process.ts'
import { NPM_SETTINGS } from '../package/consumer.ts'
import type { Tarballs } from './tarballs.ts'

const DOCUMENTED_URL = 'http://127.0.0.1:8787'
/** Replaces curl, which may be missing on this machine. */
const CURL = join(ROOT, 'test/docs/curl.mjs')

export interface CreatedProject {
  readonly path: string
  /** Runs a command in the project. Throws if it fails. Returns its standard output. */
  run(...command: readonly [string, ...string[]]): Promise<string>
  /** Runs `npm start` until the ready line, and returns the URL. Default: no further variables. */
  start(env?: Readonly<Record<string, string>>): Promise<string>
  /** Returns an access token for development. */
  token(...args: readonly string[]): Promise<string>
  file(name: string): Promise<string>
  /** Runs the requests that `npm start` printed, and returns their statuses: as in the comments, and as received. */
  printedRequests(): Promise<{ documented: readonly string[]; received: readonly string[] }>
  /** Runs the requests of the README, and returns their statuses: as documented, and as received. */
  requestsOfReadme(): Promise<{ documented: readonly string[]; received: readonly string[] }>
  /** Returns the processes that `npm start` started. */
  processes(): readonly number[]
  /** Sends SIGTERM to `npm start` and waits for its end. */
  stop(): Promise<void>
}

export interface ProjectOptions {
  /** The flags of `npm create`. Default: none. */
  readonly flags?: readonly string[]
  /**
   * Unpacks both tarballs without npm, and links all other packages to those of this checkout. Default: npm starts
   * the program that creates the project, and installs its packages.
   */
  readonly linksPackages?: boolean
}

/**
 * Creates a project in the new folder `name` as `npm run create` does, with its packages. The package
 * `portcullis` comes from the tarball, of which the project has a copy.
 */
export async function createProject(
  { folder, portcullis, createPortcullis }: Tarballs,
  name: string,
  { flags = [], linksPackages = false }: ProjectOptions = {},
): Promise<CreatedProject> {
  const parent = join(folder, `of-${name}`)
  const path = join(parent, name)
  await mkdir(parent)
  const args = [name, '--yes', '--package', portcullis, ...flags]
  if (linksPackages) {
    await unpack(createPortcullis, join(parent, 'create'))
    const program = join(parent, 'create/dist/create-portcullis.mjs')
    await succeed(runIn(parent, ['node', program, ...args], NPM_SETTINGS))
    await unpack(portcullis, join(path, 'node_modules/portcullis'))
    await linkPackages(path)
  } else {
    const create = ['npm', 'exec', '--yes', `--package=${createPortcullis}`, '--'] as const
    await succeed(runIn(parent, [...create, 'create-portcullis', ...args], NPM_SETTINGS))
    await succeed(runIn(path, ['npm', 'install'], NPM_SETTINGS))
  }
  let started: Command | undefined
  let url = DOCUMENTED_URL
  const file = (name: string) => readFile(join(path, name), 'utf8')

  async function run(...command: readonly [string, ...string[]]): Promise<string> {
    return (await succeed(runIn(path, command, NPM_SETTINGS))).stdout
  }

  async function statuses(text: string, comments: RegExp) {
    const lines = text.replaceAll(DOCUMENTED_URL, url)
    const script = `curl() { node ${CURL} "$@"; }\nexport PORTCULLIS_URL=${url}\n${lines}`
    const output = await run('sh', '-euc', script)
    const all = (what: RegExp, from: string) =>
      [...from.matchAll(what)].map(([, status = '']) => status)
    return { documented: all(comments, text), received: all(/^HTTP\/1\.1 (\d{3})/gm, output) }
  }

  return {
    path,
    run,
    async start(env = {}) {
      const port = await freePort()
      started = runIn(path, ['npm', 'start'], { PORT: String(port), ...env })
      url = `http://127.0.0.1:${port}`
      await started.printed(new RegExp(`^Portcullis is ready on ${url}\n`, 'm'))
      return url
    },
    async token(...args) {
      return (await run('npm', 'run', '-s', 'token', '--', ...args)).trim()
    },
    file,
    async requestsOfReadme() {
      const blocks = blocksOf(await file('README.md'))
      const { text = '' } = blocks.find((block) => block.text.startsWith('TOKEN=')) ?? {}
      return statuses(text, /# (\d{3})$/gm)
    },
    async printedRequests() {
      const requests = /^TOKEN=.*(?:\n# \d.*\ncurl .*)+\n/m
      const { stdout = '' } = (await started?.printed(requests)) ?? {}
      const [text = ''] = requests.exec(stdout) ?? []
      return statuses(text, /^# (\d{3})/gm)
    },
    processes: () => (started === undefined ? [] : descendantsOf(started.pid)),
    async stop() {
      started?.child.kill('SIGTERM')
      await started?.ended
    },
  }
}

/** Unpacks a tarball into a new folder. */
async function unpack(tarball: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  await succeed(runIn(folder, ['tar', 'xzf', tarball, '--strip-components=1']))
}

interface Manifest {
  readonly bin?: string | Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

const manifestIn = async (folder: string): Promise<Manifest> =>
  JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))

/** Links what a project and `portcullis` depend on, and the programs of these packages, to those of this checkout. */
async function linkPackages(path: string): Promise<void> {
  const { dependencies, devDependencies } = await manifestIn(path)
  const own = await manifestIn(join(path, 'node_modules/portcullis'))
  const programs = join(path, 'node_modules/.bin')
  await mkdir(programs)
  for (const name of Object.keys({ ...dependencies, ...devDependencies, ...own.dependencies })) {
    const from = join(ROOT, 'node_modules', name)
    const to = join(path, 'node_modules', name)
    if (name !== 'portcullis') {
      await mkdir(dirname(to), { recursive: true })
      await symlink(from, to)
    }
    const { bin = {} } = await manifestIn(to)
    for (const [program, file] of Object.entries(typeof bin === 'string' ? { [name]: bin } : bin))
      await symlink(join(to, file), join(programs, program))
  }
}

async function succeed(command: Command): Promise<Outcome> {
  const outcome = await command.ended
  if (outcome.code === 0) return outcome
  throw new Error(`${command.child.spawnargs.join(' ')}: ${JSON.stringify(outcome)}`)
}
