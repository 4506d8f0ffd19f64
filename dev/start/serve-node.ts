/** Runs a gateway on Node on this machine, in this process, with Redis over RESP. */
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { keepObjectsYoung } from '../../cli/young-objects.ts'
import { type Policy, serve } from '../../src/runtimes/node/index.ts'
import { configOf } from './gateway-vars.ts'
import { keySetComplaints } from './key-sets.ts'
import { IN_PROCESS, nodeVars } from './node-vars.ts'
import { policyImports } from './policy-paths.ts'
import { prepare, progress } from './prepare.ts'
import type { Project } from './project.ts'
import { untilReady } from './readiness.ts'
import type { OnReady } from './serve.ts'
import { ROOT, type Settings } from './settings.ts'
import type { Shutdown } from './shutdown.ts'

const DEFAULT_POLICY = join(ROOT, 'portcullis.config.ts')

/**
 * Serves the policy of a checkout until `shutdown`. Throws an `Error` that describes the problem.
 * Does NOT serve a changed policy: that needs a new start.
 */
export async function serveOnNode(
  project: Project,
  requested: Settings,
  shutdown: Shutdown,
  onReady: OnReady,
): Promise<never> {
  keepObjectsYoung()
  const { signal } = shutdown
  // The demo origin of the checkout is a Worker.
  const prepared = await prepare({ ...project, demoOrigin: undefined }, requested, shutdown)
  const { settings, vars, features, redisDied } = prepared
  const { policyFile, port } = settings
  progress('starting the gateway on Node')
  const policy = await policyIn(policyFile ?? DEFAULT_POLICY)
  signal.throwIfAborted()
  const server = await serve({ policy, env: nodeVars(prepared), port })
  shutdown.defer(server.close)
  const { issuers } = configOf(vars)
  const ready = untilReady(server.url, IN_PROCESS, {
    acceptsAnyResponse: false,
    signal,
    progress,
    keySetComplaints: () => keySetComplaints(issuers, signal),
  })
  await Promise.race([ready, redisDied])
  const examples = await project.examples({ url: server.url, vars, features, policyFile })
  signal.throwIfAborted()
  onReady(server.url, examples)
  return await redisDied
}

/** Loads a policy. Its packages are the copies of this checkout, of which `portcullis` is the source. */
export async function policyIn(file: string): Promise<Policy> {
  const imports = policyImports()
  registerHooks({
    resolve(specifier, context, next) {
      const found = Object.hasOwn(imports, specifier) ? imports[specifier] : undefined
      return next(found === undefined ? specifier : pathToFileURL(found).href, context)
    },
  })
  const { default: policy } = await import(pathToFileURL(file).href)
  return policy
}
