/** An app of `examples/frameworks` that is installed, built and started as its users do. */
import { appendFile, cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type Command, runIn } from '../dev/start/checkout.ts'
import { descendantsOf } from '../dev/start/processes.ts'
import { freePort, ROOT } from '../harness/process.ts'
import { NPM_SETTINGS } from '../package/consumer.ts'

export interface FrameworkApp {
  readonly url: string
  /** Returns the operations of the store so far: what handlers have done. */
  reached(): readonly string[]
  /** Returns the versions of these packages, as they are installed. */
  versions(names: readonly string[]): Promise<string>
  stop(): Promise<void>
}

export interface Recipe {
  /** The folder below `examples/frameworks`. */
  readonly name: string
  /** Where the store is. Default `notes.ts`. */
  readonly store?: string
  /** Packages in place of those of its `package.json`, such as `express@4`. */
  readonly instead?: readonly string[]
  /** Distinguishes two apps of one folder. */
  readonly variant?: string
  /** Is added to each module of a route. */
  readonly inRoutes?: string
  /** Text of its files that is replaced: the path, the text, and what comes in its place. */
  readonly changes?: readonly (readonly [string, string, string])[]
  /** Files that are added, by path. */
  readonly files?: Readonly<Record<string, string>>
  /** Whether `npm run build` is needed. */
  readonly isBuilt?: boolean
  /** The command of its script `start`. */
  readonly start: readonly [string, ...string[]]
  /** What it prints when it listens. */
  readonly ready: RegExp
}

/** The store of the apps, which reports each operation. Bundles of one process share it. The rest of the app is as its users write it. */
const STORE = `
const notes: Map<string, string[]> = ((globalThis as { notes?: Map<string, string[]> }).notes ??= new Map())
const report = (what: string) => console.error('reached ' + what)

export function notesOf(owner: string): readonly string[] {
  report('notesOf')
  return notes.get(owner) ?? []
}

export function addNote(owner: string, text: string): string {
  report('addNote')
  notes.set(owner, [...(notes.get(owner) ?? []), text])
  return text
}
`

/** Copies the app to `folder`, installs it with the packed package, builds it and starts it. */
export async function startFrameworkApp(
  folder: string,
  tarball: string,
  recipe: Recipe,
  env: Readonly<Record<string, string>>,
): Promise<FrameworkApp> {
  const { name, store = 'notes.ts', instead = [], files = {}, start, ready } = recipe
  const path = join(folder, name + (recipe.variant ?? ''))
  await cp(join(ROOT, 'examples/frameworks', name), path, { recursive: true })
  await writeFile(join(path, store), STORE)
  for (const [file, text] of Object.entries(files)) {
    await mkdir(dirname(join(path, file)), { recursive: true })
    await writeFile(join(path, file), text)
  }
  for (const [file, from, to] of recipe.changes ?? []) {
    const text = await readFile(join(path, file), 'utf8')
    if (!text.includes(from)) throw new Error(`${file} does not have ${from}`)
    await writeFile(join(path, file), text.replace(from, to))
  }
  if (recipe.inRoutes !== undefined)
    for (const file of await readdir(path, { recursive: true }))
      if (basename(file) === 'route.ts') await appendFile(join(path, file), recipe.inRoutes)
  // Node of the recipe, if it names one.
  const folders = [join(path, 'node_modules/node/bin'), join(ROOT, 'node_modules/node/bin')]
  const PATH = [...folders, process.env.PATH].join(':')
  const run = async (command: readonly [string, ...string[]]) => {
    const { code, stdout, stderr } = await runIn(path, command, { ...NPM_SETTINGS, PATH }).ended
    if (code !== 0) throw new Error(`${name}: ${command.join(' ')}: ${stdout}${stderr}`)
  }
  await run(['npm', 'install', tarball, ...instead])
  if (recipe.isBuilt) await run(['npm', 'run', 'build'])
  const port = await freePort()
  const [file, ...args] = start
  const program = file === 'node' ? file : join(path, 'node_modules/.bin', file)
  const command: Command = runIn(path, [program, ...args], {
    PATH,
    PORT: String(port),
    HOST: '127.0.0.1',
    ...env,
  })
  await command.printed(ready)
  return {
    url: `http://127.0.0.1:${port}`,
    reached: () => [...command.stderr().matchAll(/^reached (.+)$/gm)].map(([, what = '']) => what),
    async versions(names) {
      const found = names.map(async (each) => {
        const text = await readFile(join(path, 'node_modules', each, 'package.json'), 'utf8')
        return `${each} ${(JSON.parse(text) as { version: string }).version}`
      })
      return (await Promise.all(found)).join(', ')
    },
    async stop() {
      for (const pid of descendantsOf(command.pid)) process.kill(pid, 'SIGTERM')
      command.child.kill('SIGTERM')
      await command.ended
    },
  }
}
