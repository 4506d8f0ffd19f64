/** `npm run bench`: measures the gateway on this machine. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { ROOT } from '../dev/start/settings.ts'
import { createShutdown, type Shutdown } from '../dev/start/shutdown.ts'
import { startBackends } from './backends.ts'
import { measureLayers } from './measure-layers.ts'
import { type Options, readOptions, USAGE } from './options.ts'
import { profileGateway } from './profile.ts'
import { surroundings } from './surroundings.ts'
import { measureTokens } from './token-costs/measure-tokens.ts'
import { profileCase } from './token-costs/profile-case.ts'
import { mintTokens } from './tokens.ts'

function optionsOrExit(argv: readonly string[]): Options | 'help' {
  try {
    return readOptions(argv)
  } catch (error) {
    const [problem] = (error as Error).message.split('\n')
    console.error(`bench: ${problem}\nSee: npm run bench -- --help`)
    process.exit(2)
  }
}

async function bench(options: Options, argv: readonly string[], shutdown: Shutdown): Promise<void> {
  if (process.platform !== 'linux') throw new Error('CPU times come from /proc: needs Linux')
  const parent = join(ROOT, '.wrangler')
  mkdirSync(parent, { recursive: true })
  const directory = mkdtempSync(join(parent, 'bench-'))
  shutdown.defer(async () => rmSync(directory, { recursive: true, force: true }))

  progress('starting the origin and Redis')
  const backends = await startBackends()
  shutdown.defer(backends.close)
  const about = surroundings(argv, backends.redis.kind)
  const common = { options, backends, directory, shutdown, onProgress: progress }
  const profilesPipeline = options.profile && options.case === undefined
  if (options.layers || profilesPipeline) {
    progress('signing tokens')
    const bench = { ...common, tokens: await mintTokens(join(directory, 'keys.env')) }
    if (options.layers) save('layers', await measureLayers(bench))
    if (profilesPipeline) save('profile', await profileGateway(bench))
  }
  if (options.tokens) save('tokens', await measureTokens(common))
  if (options.case !== undefined)
    save(`profile-${options.case}`, await profileCase(common, options.case))

  function save(name: string, result: object): void {
    const folder = resolve(options.results ?? join(import.meta.dirname, 'results'))
    mkdirSync(folder, { recursive: true })
    const file = join(folder, `${about.date.slice(0, 'yyyy-mm-dd'.length)}-${name}.json`)
    writeFileSync(file, `${JSON.stringify({ benchmark: name, ...about, ...result }, null, 2)}\n`)
    progress(`written to ${file}`)
  }
}

function progress(what: string): void {
  console.error(`bench: ${what}`)
}

const argv = process.argv.slice(2)
const options = optionsOrExit(argv)
if (options === 'help') {
  console.log(USAGE)
} else {
  const shutdown = createShutdown()
  try {
    await bench(options, argv, shutdown)
    await shutdown.exit(0)
  } catch (error) {
    if (!shutdown.signal.aborted) console.error(`bench: ${(error as Error).message}`)
    await shutdown.exit(1)
  }
}
