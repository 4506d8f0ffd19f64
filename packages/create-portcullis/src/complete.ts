/** Completes the flags with answers or defaults. */
import { type Answers, PACKAGE_MANAGERS, type PackageManager } from './answers.ts'
import { usage } from './failure.ts'
import { type Issuer, PROVIDERS } from './identity-providers.ts'
import type { Flags } from './options.ts'

const DEFAULT_DIRECTORY = 'my-gateway'

/** Returns the answers, with defaults for what is missing. Throws a usage failure if an issuer is incomplete. */
export function complete(flags: Flags, env: NodeJS.ProcessEnv): Answers {
  const { directory = DEFAULT_DIRECTORY, kind = 'gateway', redis = 'local', origin } = flags
  const { packageManager = runningManager(env), git = true, tarball } = flags
  const issuer = issuerIn(flags)
  return { directory, kind, redis, origin, packageManager, git, issuer, tarball }
}

/** Returns the package manager that runs this command, as it names itself: `pnpm/10.1.0 npm/? node/v24.0.0`. */
function runningManager({ npm_config_user_agent: agent = '' }: NodeJS.ProcessEnv): PackageManager {
  return PACKAGE_MANAGERS.find((name) => agent.startsWith(`${name}/`)) ?? 'npm'
}

function issuerIn({ idp, issuer, audience }: Flags): Issuer | undefined {
  if (idp === 'none' || (idp === undefined && issuer === undefined && audience === undefined)) {
    return undefined
  }
  const provider = PROVIDERS.find(({ name }) => name === (idp ?? 'other'))
  if (provider === undefined) throw usage(`--idp: unknown identity provider ${idp}`)
  if (issuer === undefined && !provider.hasIssuer)
    throw usage(`--issuer is missing, such as ${provider.issuer}`)
  if (audience === undefined && !provider.hasAudience)
    throw usage(`--audience is missing: ${provider.audience}`)
  return { provider, issuer, audience }
}
