/** The wrangler commands that `npm start` runs. */
import { join } from 'node:path'
import { replace } from '../dev-vars.ts'
import { environmentFile, type GatewayVars } from './gateway-vars.ts'
import type { Instance } from './instance.ts'
import { policyModule, policyTsconfig } from './policy-paths.ts'
import { HOST, type Settings } from './settings.ts'

const AUDIT_DATABASE = 'portcullis-audit'
const GATEWAY_CONFIG = 'wrangler.toml'
const AUDIT_CONFIG = 'workers/audit.toml'
const DEMO_ORIGIN_CONFIG = 'workers/origin.toml'

/** Returns the arguments that create or update the tables of the audit trail. */
export function migrationArguments({ stateDirectory }: Instance): readonly string[] {
  return [
    ...['d1', 'migrations', 'apply', AUDIT_DATABASE, '--local', '-c', AUDIT_CONFIG],
    ...['--persist-to', stateDirectory],
  ]
}

/**
 * Returns the arguments that serve all Workers in one `wrangler dev`, because a queue needs its
 * producer and consumer there. Writes variables with secrets to a file in the instance's directory.
 */
export function serveArguments(
  { port, verbose, policyFile }: Settings,
  { directory, stateDirectory }: Instance,
  vars: GatewayVars,
): readonly string[] {
  const varsFile = join(directory, 'gateway.env')
  replace(varsFile, environmentFile(vars))
  return [
    ...['dev', '-c', GATEWAY_CONFIG, '-c', AUDIT_CONFIG],
    ...(vars.ORIGIN_URL === undefined ? ['-c', DEMO_ORIGIN_CONFIG] : []),
    ...['--ip', HOST, '--port', String(port), '--inspector-port', '0'],
    ...['--persist-to', stateDirectory, '--env-file', varsFile],
    ...(policyFile === undefined ? [] : policyArguments(policyFile, directory)),
    ...['--show-interactive-dev-session=false', ...(verbose ? [] : ['--log-level', 'warn'])],
  ]
}

function policyArguments(policyFile: string, directory: string): readonly string[] {
  const module = join(directory, 'policy.ts')
  replace(module, policyModule(policyFile))
  const tsconfig = join(directory, 'tsconfig.json')
  replace(tsconfig, policyTsconfig(module))
  return ['--tsconfig', tsconfig]
}
