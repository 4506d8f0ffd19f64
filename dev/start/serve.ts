/** Runs a project on this machine: Redis, its REST server, the Workers and a demo origin. */
import { decisionIn } from '../../cli/live/decision.ts'
import type { Live } from '../../cli/live/live.ts'
import { prepareAuditDatabase } from './audit-database.ts'
import { configOf } from './gateway-vars.ts'
import { keySetComplaints } from './key-sets.ts'
import { prepare, print, progress } from './prepare.ts'
import type { Project } from './project.ts'
import { untilReady } from './readiness.ts'
import {
  createRestart,
  type FollowedPolicy,
  followWorkers,
  keepServing,
  type Serving,
} from './serving.ts'
import { HOST, type Settings } from './settings.ts'
import { show } from './show.ts'
import type { Shutdown } from './shutdown.ts'
import { migrationArguments, serveArguments } from './workers.ts'
import { complaint, startWrangler, type Wrangler } from './wrangler.ts'

/**
 * Serves `project` until its processes end, and then throws an `Error` that describes the problem.
 * Writes progress to stderr. The processes end with `shutdown`.
 */
export async function serveProject(
  project: Project,
  settings: Settings,
  shutdown: Shutdown,
  live: Live,
  followed: FollowedPolicy,
): Promise<never> {
  const { policyFile } = settings
  const { signal } = shutdown
  const serving = await start(project, settings, shutdown, live).catch(async (error: Error) => {
    throw new Error(await followed.located(error.message), { cause: error })
  })
  const { located } = followed
  followed.reportChanges(signal, progress)
  return await keepServing(serving, { project, policyFile, signal, progress, located })
}

/** Starts everything, and resolves when it is ready. */
async function start(
  project: Project,
  requested: Settings,
  shutdown: Shutdown,
  live: Live,
): Promise<Serving> {
  const { settings, instance, features, vars, redisDied } = await prepare(
    project,
    requested,
    shutdown,
  )
  const { signal } = shutdown
  let isReady = false
  /** Shows a line of the log that is a decision. Requests before the ready line are those of `npm start`. */
  function decided(line: string): boolean {
    const event = decisionIn(line)
    const isShown = project.kind === 'app' || event?.path !== undefined
    if (event !== undefined && isShown && isReady) live.decided(event)
    return event !== undefined
  }
  function run(args: readonly string[]): Wrangler {
    signal.throwIfAborted()
    const wrangler = startWrangler(args, instance.directory, project)
    shutdown.defer(wrangler.stop)
    if (settings.verbose) wrangler.follow((line) => void (decided(line) || print(line)))
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
  const { issuers } = configOf(vars, features.issuers)
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
    if (!settings.verbose) followWorkers(workers, { url, signal, print, progress, decided })
    return workers
  }
  progress('starting the Workers')
  const workers = await serve()
  const restart = createRestart()
  await show({
    ...{ project, url, live, shutdown, settings, vars, features },
    reload() {
      progress('starting the Workers again')
      restart.request()
    },
  })
  isReady = true
  return { workers, redisDied, serveAgain: serve, restart }
}
