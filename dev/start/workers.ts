/** The wrangler commands that serve a project. */
import { join } from 'node:path'
import { replace } from '../private-file.ts'
import { environmentFile, type GatewayVars } from './gateway-vars.ts'
import type { Instance } from './instance.ts'
import type { Migrations, Project } from './project.ts'
import { HOST, type Settings } from './settings.ts'

/** Returns the arguments that create or update the tables of the audit trail. */
export function migrationArguments(
  { database, config }: Migrations,
  stateDirectory: string,
): readonly string[] {
  return [
    ...['d1', 'migrations', 'apply', database, '--local', '-c', config],
    ...['--persist-to', stateDirectory],
  ]
}

/**
 * Returns the arguments that serve all Workers in one `wrangler dev`, because a queue needs its
 * producer and consumer there. Writes variables with secrets to a file in the instance's directory.
 */
export function serveArguments(
  project: Project,
  { port, verbose, policyFile }: Settings,
  { directory, stateDirectory }: Instance,
  vars: GatewayVars,
): readonly string[] {
  const varsFile = join(directory, 'gateway.env')
  // An app logs its events without this.
  const logged = project.kind === 'gateway' ? { ...vars, DECISION_LOG: 'on' } : vars
  replace(varsFile, environmentFile(logged))
  const { demoOrigin, policyArguments } = project
  const configs =
    vars.ORIGIN_URL === undefined && demoOrigin !== undefined
      ? [...project.configs, demoOrigin]
      : project.configs
  return [
    ...['dev', ...configs.flatMap((config) => ['-c', config])],
    ...['--ip', HOST, '--port', String(port), '--inspector-port', '0'],
    ...['--persist-to', stateDirectory, '--env-file', varsFile],
    ...(policyFile === undefined ? [] : (policyArguments?.(policyFile, directory) ?? [])),
    ...['--show-interactive-dev-session=false', ...(verbose ? [] : ['--log-level', 'warn'])],
  ]
}
