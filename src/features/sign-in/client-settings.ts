/** `signIn` of an entry of `ISSUER_CLIENTS`, with what the rest of the entry and its issuer must be for it. */
import { Misconfigured } from '../../errors.ts'
import { mistakeAt } from '../../problems/mistake.ts'
import { parseConfiguration } from '../../validators/configuration.ts'
import type { IssuerConfig } from '../../validators/issuer.ts'
import type { IssuerClient } from '../../validators/issuer-client.ts'
import { type SignInSettings, signInClientSchema } from './schema.ts'

/** Returns the settings of the client with this index. Throws `Misconfigured`. */
export function readClientSettings(
  client: IssuerClient,
  { issuer, keySet }: Pick<IssuerConfig, 'issuer' | 'keySet'>,
  index: number,
): SignInSettings {
  const place = ['ISSUER_CLIENTS', index]
  const at = [...place, 'signIn']
  const settings = parseConfiguration('The environment', signInClientSchema, client.signIn, at)
  if (settings.preset === 'github' && 'key' in client)
    throw new Misconfigured('The environment', [
      mistakeAt(
        'conflict',
        [...place, 'key'],
        'GitHub does not accept keys of clients; set secret',
      ),
    ])
  if (settings.preset === undefined && keySet === 'none')
    throw new Misconfigured('The environment', [
      mistakeAt(
        'conflict',
        at,
        `requires keys for ID tokens; remove keySet from the entry of ${issuer} in ISSUERS`,
      ),
    ])
  return settings
}
