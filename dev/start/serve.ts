/** Runs a project on this machine: Redis, its REST server, the Workers and a demo origin. */
import { prepareAuditDatabase } from './audit-database.ts'
import { configOf } from './gateway-vars.ts'
import { keySetComplaints } from './key-sets.ts'
import { prepare, print, progress } from './prepare.ts'
import type { Project } from './project.ts'
import { untilReady } from './readiness.ts'
import { followWorkers, keepServing, type Serving } from './serving.ts'
import { HOST, type Settings } from './settings.ts'
import type { Shutdown } from './shutdown.ts'
import { migrationArguments, serveArguments } from './workers.ts'
import { complaint, startWrangler, type Wrangler } from './wrangler.ts'

/** Receives the address of the gateway and the example requests, once, when it is ready. */
export type OnReady = (url: string, examples: string) => void

/**
 * Serves `project` until its processes end, and then throws an `Error` that describes the problem.
 * Writes progress to stderr. The processes end with `shutdown`.
 */
export async function serveProject(
  project: Project,
  settings: Settings,
  shutdown: Shutdown,
  onReady: OnReady,
): Promise<never> {
  const serving = await start(project, settings, shutdown, onReady)
  const { policyFile } = settings
  return await keepServing(serving, { project, policyFile, signal: shutdown.signal, progress })
}

/** Starts everything, and resolves when it is ready. */
async function start(
  project: Project,
  requested: Settings,
  shutdown: Shutdown,
  onReady: OnReady,
): Promise<Serving> {
  const { settings, instance, features, vars, redisDied } = await prepare(
    project,
    requested,
    shutdown,
  )
  const { signal } = shutdown
  function run(args: readonly string[]): Wrangler {
    signal.throwIfAborted()
    const wrangler = startWrangler(args, instance.directory, project)
    shutdown.defer(wrangler.stop)
    if (settings.verbose) wrangler.follow(print)
    return wrangler
  }

  const { root, migrations } = project
  if (migrations !== undefined) {
    progress('preparing the audit database')
    const { stateDirectory } = instance
    const apply = async (state: string) => {
      const migration = run(migrationArguments(migrations, state))
      const code = await migration.ended
      signal.throwIfAborted()
      if (code !== 0) throw new Error(`the audit database: ${complaint(migration.lines())}`)
    }
    await prepareAuditDatabase({ root, migrations, stateDirectory, apply })
  }

  const url = `http://${HOST}:${settings.port}`
  const { issuers } = configOf(vars)
  async function serve(): Promise<Wrangler> {
    const workers = run(serveArguments(project, settings, instance, vars))
    const ready = untilReady(url, workers, {
      acceptsAnyResponse: project.kind === 'app',
      signal,
      progress,
      keySetComplaints: () => keySetComplaints(issuers, signal),
    })
    await Promise.race([ready, redisDied]).catch(async (error) => {
      await workers.stop()
      throw error
    })
    if (!settings.verbose) followWorkers(workers, { url, signal, print, progress })
    return workers
  }
  progress('starting the Workers')
  const workers = await serve()
  const { policyFile } = settings
  const examples = await project.examples({ url, vars, features, policyFile })
  signal.throwIfAborted()
  onReady(url, examples)
  return { workers, redisDied, serveAgain: serve }
}
