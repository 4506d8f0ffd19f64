/** Serves a policy for `portcullis dev` and `npm run start:node`, in this process, with a Redis and an origin for it. */
import { configOf } from '../dev/start/gateway-vars.ts'
import { keySetComplaints } from '../dev/start/key-sets.ts'
import { createLogForPeople } from '../dev/start/log-for-people.ts'
import { IN_PROCESS, nodeVars } from '../dev/start/node-vars.ts'
import { prepare, progress } from '../dev/start/prepare.ts'
import type { Project } from '../dev/start/project.ts'
import { untilReady } from '../dev/start/readiness.ts'
import type { Settings } from '../dev/start/settings.ts'
import { show } from '../dev/start/show.ts'
import type { Shutdown } from '../dev/start/shutdown.ts'
import type { Policy, ServeOptions, Server } from '../src/runtimes/node/index.ts'
import { boundHeap } from './heap-flags.ts'
import type { Live } from './live/live.ts'
import { withDeployer } from './policy/deployed-by.ts'
import { policyReload } from './policy/reload.ts'
import { policyVersions } from './policy/versions.ts'
import { policyWatch } from './policy/watch.ts'

export interface NodeProjectOptions {
  /** The folder of the project. */
  readonly root: string
  readonly file: string
  /** Describes the project of a policy. */
  projectOf(policy: Policy): Project
  /** `serve` of the copy of the package that made the policy. */
  readonly serve: (options: ServeOptions) => Promise<Server>
  readonly settings: Settings
  readonly shutdown: Shutdown
  readonly live: Live
}

/**
 * Serves the policy until `shutdown`, and each changed version of it. Throws an `Error` that describes
 * the problem.
 */
export async function serveNodeProject({
  root,
  file,
  projectOf,
  serve,
  settings: requested,
  shutdown,
  live,
}: NodeProjectOptions): Promise<never> {
  boundHeap()
  const { signal } = shutdown
  const versions = policyVersions(file, root)
  const current = await versions.load()
  const startWatch = policyWatch(versions.files)
  const { policy, digest } = current
  const project = projectOf(policy)
  const prepared = await prepare(project, requested, shutdown)
  const { settings, vars, features, redisDied } = prepared
  const { port } = settings
  progress('starting the gateway on Node')
  signal.throwIfAborted()
  let isReady = false
  const server = await serve({
    ...{ policy, policyDigest: digest, env: withDeployer(nodeVars(prepared), policy, file), port },
    // Requests before the ready line are those of this program.
    decided: (event, path) => isReady && live.decided({ ...event, path }),
  })
  shutdown.defer(server.close)
  const { issuers } = configOf(vars, features.issuers)
  const { url } = server
  const ready = untilReady(url, IN_PROCESS, {
    acceptsAnyResponse: false,
    signal,
    progress,
    keySetComplaints: () => keySetComplaints(issuers, signal),
  })
  await Promise.race([ready, redisDied])
  const reload = policyReload({
    versions,
    current,
    file,
    use: ({ policy }, change) => server.reload(policy, change),
    log: createLogForPeople(root, progress),
  })
  await show({
    ...{ project, url, live, shutdown, settings, vars, features },
    reload: () => server.reloadCertificate().then(() => reload('key')),
  })
  isReady = true
  startWatch(() => reload('watch'))
  return await redisDied
}
