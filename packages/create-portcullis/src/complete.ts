/** Completes the flags with answers or defaults. */
import type { Answers } from './answers.ts'
import { usage } from './failure.ts'
import { type Issuer, PROVIDERS } from './identity-providers.ts'
import type { Flags } from './options.ts'

const DEFAULT_DIRECTORY = 'my-gateway'

/** Returns the answers, with defaults for what is missing. Throws a usage failure if an issuer is incomplete. */
export function complete(flags: Flags): Answers {
  const { directory = DEFAULT_DIRECTORY, kind = 'gateway', redis = 'local', origin } = flags
  return { directory, kind, redis, origin, issuer: issuerIn(flags) }
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
