/** Variables for features that the policy does not import. */
import { Misconfigured } from '../errors.ts'
import type { Policy } from '../policy/policy.ts'
import type { Config, EnvironmentInput } from '../validators/environment.ts'
import { unusedSetting } from '../validators/feature.ts'

/** A list without an entry configures nothing. */
const listed = (list: string | undefined) => (list?.trim() === '[]' ? undefined : list)

/** Throws `Misconfigured` if a variable is set for a feature that the policy does not import. */
export function refuseUnusedSettings(
  { CLIENTS, ISSUER_CLIENTS, SIGNAL_TRANSMITTERS, OTLP_ENDPOINT }: EnvironmentInput,
  { issuers }: Config,
  { features }: Policy,
): void {
  const mistakes = [
    ...unusedSetting(['CLIENTS'], listed(CLIENTS), ['authorizationServer'], features),
    ...unusedSetting(
      ['ISSUER_CLIENTS'],
      listed(ISSUER_CLIENTS),
      ['introspection', 'signIn'],
      features,
    ),
    ...issuers.flatMap(({ introspection, userinfo }, index) => [
      ...unusedSetting(
        ['ISSUERS', index, 'introspection'],
        introspection,
        ['introspection'],
        features,
      ),
      ...unusedSetting(['ISSUERS', index, 'userinfo'], userinfo, ['introspection'], features),
    ]),
    ...unusedSetting(['SIGNAL_TRANSMITTERS'], listed(SIGNAL_TRANSMITTERS), ['signals'], features),
    ...unusedSetting(['OTLP_ENDPOINT'], OTLP_ENDPOINT, ['otlp'], features),
  ]
  if (mistakes.length > 0) throw new Misconfigured('The environment', mistakes)
}
