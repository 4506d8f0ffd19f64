/** An empty project outside of the repository that has the packed package as a dependency. */
import { existsSync } from 'node:fs'
import { cp, mkdir, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Command, runIn } from '../dev/start/checkout.ts'
import { ROOT } from '../harness/process.ts'

/** A first installation may fill the cache of npm; later ones need no network. */
export const NPM_SETTINGS = {
  npm_config_prefer_offline: 'true',
  npm_config_audit: 'false',
  npm_config_fund: 'false',
}

export interface Consumer {
  readonly path: string
  /** Starts a command in the project. */
  start(command: readonly [string, ...string[]], env?: Record<string, string>): Command
  /** Runs a command in the project. Returns its output; throws with its first lines if it fails. */
  run(command: readonly [string, ...string[]], env?: Record<string, string>): Promise<string>
  /** Writes a file of the project. Anything but a text becomes JSON. */
  write(file: string, content: unknown): Promise<void>
  /** Copies a file of the repository. */
  copy(from: string, to: string): Promise<void>
  /** Lets the project use a package of this checkout as `name`. */
  link(name: string, installed: string): Promise<void>
}

/** The lines of a failed command that a failure shows. */
const SHOWN_LINES = 15

/** Creates the project `name` in a folder, and installs its dependencies, by name. */
export async function createConsumer(
  folder: string,
  name: string,
  dependencies: Readonly<Record<string, string>>,
): Promise<Consumer> {
  const path = join(folder, name)
  await mkdir(path)
  // Without it, the shell's own Node, which may be older than some tools accept.
  const PATH = `${join(path, 'node_modules/node-24/bin')}:${process.env.PATH}`
  const consumer: Consumer = {
    path,
    start: (command, env) => runIn(path, command, { PATH, ...env }),
    async run(command, env) {
      const { code, stdout, stderr } = await consumer.start(command, env).ended
      if (code === 0) return stdout
      const lines = `${stdout}${stderr}`.trim().split('\n').slice(0, SHOWN_LINES)
      throw new Error(`${command.join(' ')} failed (${code}):\n${lines.join('\n')}`)
    },
    async write(file, content) {
      await mkdir(dirname(join(path, file)), { recursive: true })
      const text = typeof content === 'string' ? content : JSON.stringify(content)
      await writeFile(join(path, file), text)
    },
    async copy(from, to) {
      await mkdir(dirname(join(path, to)), { recursive: true })
      await cp(join(ROOT, from), join(path, to), { recursive: true })
    },
    async link(name, installed) {
      const packages = join(path, 'node_modules')
      await symlink(join(ROOT, 'node_modules', installed), join(packages, name))
      const program = join(ROOT, 'node_modules/.bin', name)
      if (existsSync(program)) await symlink(program, join(packages, '.bin', name))
    },
  }
  await consumer.write('package.json', { name, private: true, type: 'module', dependencies })
  await consumer.run(['npm', 'install'], NPM_SETTINGS)
  return consumer
}
