/** Serves a project for `portcullis dev` on Node: its policy, without wrangler. */
import { demoOf, requestsOf } from '../dev/start/examples.ts'
import { MAIN_CONFIG } from '../dev/start/main-config.ts'
import type { Project } from '../dev/start/project.ts'
import type { Settings } from '../dev/start/settings.ts'
import type { Shutdown } from '../dev/start/shutdown.ts'
import { featuresIn, TOKEN_COMMAND } from '../dev/start/user-project.ts'
import type { Policy, ServeOptions, Server } from '../src/runtimes/node/index.ts'
import type { Live } from './live/live.ts'
import { policyFile, projectModule } from './policy/load.ts'
import { serveNodeProject } from './serve-node-project.ts'

/**
 * Serves the policy of the folder `root` until `shutdown`, and each changed version of it. Throws an `Error`
 * that describes the problem.
 */
export async function serveNodeFolder(
  root: string,
  settings: Settings,
  shutdown: Shutdown,
  live: Live,
): Promise<never> {
  const { serve } = await projectModule<NodeModule>('node', root)
  return await serveNodeProject({
    root,
    file: settings.policyFile ?? policyFile(undefined, '', root, root),
    projectOf: (policy) => projectOf(root, policy),
    serve,
    ...{ settings, shutdown, live },
  })
}

interface NodeModule {
  readonly serve: (options: ServeOptions) => Promise<Server>
}

const projectOf = (root: string, policy: Policy): Project => ({
  root,
  wrangler: '',
  kind: 'gateway',
  configs: [MAIN_CONFIG],
  migrations: undefined,
  demoOrigin: undefined,
  vars: {},
  featuresOf: async () => featuresIn(policy),
  policyArguments: () => [],
  checkModel: async () => {},
  tokenCommand: TOKEN_COMMAND,
  demo: async ({ url, features }) => demoOf(url, requestsOf(policy, url), TOKEN_COMMAND, features),
})
