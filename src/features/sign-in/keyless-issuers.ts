/** The providers of the sign-in that speak OAuth 2.0 without OpenID Connect. */
import type { Config } from '../../validators/environment.ts'
import { issuerClientsOf } from '../../validators/issuer-client.ts'

/** The presets of `signIn`, of which none has ID tokens, keys or metadata. */
const KEYLESS_PRESETS = ['github'] as const

/** Returns the issuers whose users sign in with such a preset. */
export const keylessIssuers = (config: Pick<Config, 'variables'>): readonly string[] =>
  issuerClientsOf(config).flatMap(({ issuer, signIn }) => (isKeyless(signIn) ? [issuer] : []))

/** The value is checked when the sign-in begins, so it may have any form here. */
const isKeyless = (signIn: unknown): boolean =>
  typeof signIn === 'object' &&
  signIn !== null &&
  'preset' in signIn &&
  KEYLESS_PRESETS.some((preset) => preset === signIn.preset)
