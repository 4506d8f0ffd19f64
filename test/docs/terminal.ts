/** A shell in a checkout of its own. Variables stay assigned from one block to the next. */
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { PORTCULLIS, packedPackages } from '../create/tarballs.ts'
import { builtPackage } from '../dev/start/build.ts'
import { type Command, makeCheckout } from '../dev/start/checkout.ts'
import { ROOT } from '../harness/process.ts'

/** Replaces curl on machines without it. */
const CURL = join(import.meta.dirname, 'curl.mjs')

/** The examples that `npm start` prints at last. */
const EXAMPLES = /^# .*\ncurl .*\n# .*\ncurl .*\n# .*\ncurl .*\n# .*\nnpx .*\n/m

/** Commands that run until they are stopped, and the output that says that they are ready. */
const SERVERS: readonly (readonly [command: string, ready: RegExp])[] = [
  ['npm start', EXAMPLES],
  ['npm run start:node', EXAMPLES],
  ['node examples/books/api.mjs', /listens on/],
  ['node examples/shop/api.mjs', /listen on/],
  ['npx portcullis redis', /^UPSTASH_REDIS_REST_TOKEN=/m],
]

/** The first step of an app with a guard. */
const INSTALL = 'npm install portcullis hono zod'

/** The first step of a checkout. */
const LOCK_FILE = 'npm ci'

/** The command line. */
const NPX = /npx portcullis /g
/** The same in a checkout that is built: npm would run `prepare`. */
const BUILT_NPX = 'env npm_config_ignore_scripts=true npx portcullis '

export interface Outcome {
  readonly code: number | null
  /** Standard output and error together. */
  readonly output: string
}

export interface Terminal {
  /** The checkout's folder. */
  readonly path: string
  /**
   * Runs a block of shell commands. If its last line is a server, waits until that is ready (code
   * null) or has ended; a server of the same kind is stopped first.
   */
  run(block: string): Promise<Outcome>
  /** Forgets the variables that blocks have assigned, as a new shell does. */
  forgetVariables(): Promise<void>
  close(): Promise<void>
}

/** Which slow commands terminals have run as they are. */
export interface Proven {
  npx: boolean
  install: boolean
  lockFile: boolean
}

/**
 * Opens a terminal. Replaces `substitutions` in every block; `env` is the user's environment.
 *
 * Some commands are replaced. `npm ci` would replace the packages that other tests use, so it only
 * checks the lock file, and the checkout has the build of its `prepare` script. `npm test` would run this test, so
 * it runs one file. `npm install portcullis` installs the tarball of the checkout in an empty
 * project and loads the guard from it. `npx` starts npm, which packs and installs the checkout; it does not build
 * it again. All three take longer than other commands. So each of them runs once for the terminals that share
 * `proven`; after that, `npx portcullis` starts the program that npm would start, and the others are skipped.
 */
export async function openTerminal(
  substitutions: readonly (readonly [from: string, to: string])[],
  env: Readonly<Record<string, string>>,
  proven: Proven = { npx: false, install: false, lockFile: false },
): Promise<Terminal> {
  const checkout = await makeCheckout()
  await cp(join(ROOT, 'examples'), join(checkout.path, 'examples'), { recursive: true })
  await cp(await builtPackage(), join(checkout.path, 'dist'), { recursive: true })
  const scratch = await mkdtemp(join(tmpdir(), 'portcullis-terminal-'))
  for (const name of ['package.json', 'package-lock.json'])
    await cp(join(ROOT, name), join(scratch, name))
  const state = join(scratch, 'state')
  await writeFile(state, '')
  const programs = join(scratch, 'bin')
  await mkdir(programs)
  const curl = `#!/bin/sh\nexec node ${CURL} "$@"\n`
  await writeFile(join(programs, 'curl'), curl, { mode: 0o755 })
  const bin = join(checkout.path, 'node_modules/.bin')
  const program = join(checkout.path, 'dist/portcullis.mjs')
  const direct = `env PATH=${bin}:$PATH ${join(bin, 'node')} ${program} `
  const check = `(cd ${scratch} && npm ci --dry-run --offline --ignore-scripts)`
  const tarball = join(await packedPackages(), PORTCULLIS)
  const install = [
    `(mkdir ${scratch}/app && cd ${scratch}/app && npm init -y`,
    `npm install --no-audit --no-fund ${tarball} hono zod`,
    `node -e "import('portcullis/hono').then(({ portcullis }) => portcullis.name)")`,
  ].join(' && ')
  const running = new Map<string, Command>()
  const stops: readonly (readonly [string, string])[] = [
    ...substitutions,
    [
      'npm test',
      `(cd ${ROOT} && npm test -- --project parts test/access/admission/approximate-window.test.ts)`,
    ],
  ]

  function shell(script: string): Command {
    return checkout.run(['sh', '-euc', `set -a; . ${state}\n${script}`], {
      ...env,
      // Keeps the cache of `npx` out of the user's home.
      npm_config_cache: join(scratch, 'npm'),
      PATH: [userPath(), programs].join(delimiter),
    })
  }

  async function serve(script: string, server: string, ready: RegExp): Promise<Outcome> {
    await stop(running.get(server))
    const command = shell(script)
    running.set(server, command)
    const printed = command.printed(ready).catch(() => command.ended)
    const { code, stdout, stderr } = await printed
    return { code, output: stdout + stderr }
  }

  return {
    path: checkout.path,
    async run(block) {
      const replaced = stops.reduce((all, [from, to]) => all.replaceAll(from, to), block)
      const text = replaced
        .replaceAll(INSTALL, proven.install ? 'true' : install)
        .replaceAll(LOCK_FILE, proven.lockFile ? 'true' : check)
      proven.install ||= block.includes(INSTALL)
      proven.lockFile ||= block.includes(LOCK_FILE)
      const npx = proven.npx ? direct : BUILT_NPX
      const started = (script: string) => script.replaceAll(NPX, npx)
      const lines = text.split('\n')
      const last = lines.at(-1) ?? ''
      const [server, ready] = SERVERS.find(([command]) => last.includes(command)) ?? []
      const before = server === undefined ? text : lines.slice(0, -1).join('\n')
      // `set -e` does not end a shell when the first command of `a && b` fails.
      const script = `${started(before)}\n[ $? -eq 0 ] || exit 1\nexport -p > ${state}`
      const { code, stdout, stderr } = await shell(script).ended
      const outcome =
        code !== 0 || server === undefined || ready === undefined
          ? { code, output: stdout + stderr }
          : await serve(started(last.replace(server, `exec ${server}`)), server, ready)
      proven.npx ||= block.search(NPX) >= 0
      return outcome
    },
    forgetVariables: () => writeFile(state, ''),
    async close() {
      await Promise.all([...running.values()].map(stop))
      await checkout.close()
      await rm(scratch, { recursive: true, force: true })
    },
  }
}

async function stop(command: Command | undefined): Promise<void> {
  command?.child.kill('SIGTERM')
  await command?.ended
}

/** Returns PATH without the folders of programs that npm adds. */
function userPath(): string {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return folders.filter((folder) => !folder.endsWith('node_modules/.bin')).join(delimiter)
}
