/** Serves a project for `portcullis dev` on Node: its policy, without wrangler. */
import { printed, requestsOf } from '../dev/start/examples.ts'
import { configOf } from '../dev/start/gateway-vars.ts'
import { keySetComplaints } from '../dev/start/key-sets.ts'
import { MAIN_CONFIG } from '../dev/start/main-config.ts'
import { IN_PROCESS, nodeVars } from '../dev/start/node-vars.ts'
import { prepare, progress } from '../dev/start/prepare.ts'
import type { Project } from '../dev/start/project.ts'
import { untilReady } from '../dev/start/readiness.ts'
import type { OnReady } from '../dev/start/serve.ts'
import type { Settings } from '../dev/start/settings.ts'
import type { Shutdown } from '../dev/start/shutdown.ts'
import type { Policy, ServeOptions, Server } from '../src/runtimes/node/index.ts'
import { policyFile, projectModule } from './policy/load.ts'
import { policyReload } from './policy/reload.ts'
import { policyVersions } from './policy/versions.ts'
import { policyWatch } from './policy/watch.ts'
import type { Log } from './server-log.ts'
import { keepObjectsYoung } from './young-objects.ts'

/**
 * Serves the policy of the folder `root` until `shutdown`, and each changed version of it. Throws an `Error`
 * that describes the problem.
 */
export async function serveNodeFolder(
  root: string,
  requested: Settings,
  shutdown: Shutdown,
  onReady: OnReady,
): Promise<never> {
  keepObjectsYoung()
  const { signal } = shutdown
  const file = requested.policyFile ?? policyFile(undefined, '', root, root)
  const versions = policyVersions(file, root)
  const current = await versions.load()
  const startWatch = policyWatch(versions.files)
  const { policy, digest } = current
  const project = projectOf(root, policy)
  const prepared = await prepare(project, requested, shutdown)
  const { settings, vars, features, redisDied } = prepared
  const { port } = settings
  progress('starting the gateway on Node')
  const { serve } = await projectModule<NodeModule>('node', root)
  const server = await serve({ policy, policyDigest: digest, env: nodeVars(prepared), port })
  shutdown.defer(server.close)
  const { issuers } = configOf(vars)
  const ready = untilReady(server.url, IN_PROCESS, {
    acceptsAnyResponse: false,
    signal,
    progress,
    keySetComplaints: () => keySetComplaints(issuers, signal),
  })
  await Promise.race([ready, redisDied])
  const examples = await project.examples({ url: server.url, vars, features, policyFile: file })
  signal.throwIfAborted()
  const reload = policyReload({
    versions,
    current,
    file,
    use: ({ policy }, change) => server.reload(policy, change),
    log: toPerson,
  })
  process.on('SIGHUP', () => void server.reloadCertificate().then(() => reload('SIGHUP')))
  startWatch(() => reload('watch'))
  onReady(server.url, examples)
  return await redisDied
}

interface NodeModule {
  readonly serve: (options: ServeOptions) => Promise<Server>
}

function projectOf(root: string, policy: Policy): Project {
  const has = (name: string) => policy.features.some((feature) => feature.name === name)
  return {
    root,
    wrangler: '',
    kind: 'gateway',
    configs: [MAIN_CONFIG],
    migrations: undefined,
    demoOrigin: undefined,
    vars: {},
    featuresOf: async () => ({
      operators: has('operators'),
      authorizationServer: has('authorizationServer'),
    }),
    policyArguments: () => [],
    checkModel: async () => {},
    async examples({ url, vars, features }) {
      const requests = await requestsOf(policy, url, vars)
      return printed(url, requests, features.operators && features.authorizationServer)
    },
  }
}

/** Prints a message of a reload, its place and suggestion, and what has changed. */
const toPerson: Log = (_level, message, fields = {}) => {
  const { file, line, column, suggestion, changes = [] } = fields
  const place = file === undefined ? '' : `${file}:${line}:${column}: `
  progress(`${place}${message}${suggestion === undefined ? '' : `; ${suggestion}`}`)
  for (const change of changes as readonly string[]) progress(`  ${change}`)
}
