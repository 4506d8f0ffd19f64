/**
 * The callback of each provider (RFC 9700 section 4.4.2). If all providers had one callback, a provider
 * could send the browser to a second provider. The response of the second provider would then complete
 * the login at the first.
 */
import { CALLBACK_PATH } from './return-path.ts'

export interface CallbackRules {
  readonly issuer: string
  /** Whether users sign in at this provider only. */
  readonly isOnly: boolean
  /** As configured: `shared` keeps one callback for all. Default: by what the provider announces. */
  readonly callback: 'shared' | 'own' | undefined
  /** Whether responses name the provider (RFC 9207), as its metadata announces. */
  readonly namesItself: boolean
}

/** Returns the path of the callback. A shared one is safe where the response names its provider. */
export function callbackPathOf({ issuer, isOnly, callback, namesItself }: CallbackRules): string {
  const isShared = callback === 'shared' || (callback === undefined && (isOnly || namesItself))
  return isShared ? CALLBACK_PATH : `${CALLBACK_PATH}/${callbackNameOf(issuer)}`
}

/** Returns the name of a provider in its callback: its issuer in lower case, without its scheme. */
export const callbackNameOf = (issuer: string): string =>
  issuer
    .toLowerCase()
    .replace(/^https?:\/\//, '')
    .replaceAll(/[^a-z\d]+/g, '-')
    .replace(/-$/, '')

/** Reports whether metadata announces `iss` in responses. */
export const namesItself = (metadata: object): boolean =>
  'authorization_response_iss_parameter_supported' in metadata &&
  metadata.authorization_response_iss_parameter_supported === true
