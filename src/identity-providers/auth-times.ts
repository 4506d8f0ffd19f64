/**
 * When the ID tokens of known providers have `auth_time`, which `session.maxAgeSeconds` and `max_age`
 * need. Gateways do not contain this table.
 */
import type { PresetName } from './presets.ts'
import { SOURCES } from './sources.ts'

/**
 * - `always`: in every ID token.
 * - `requested`: in the ID token of a login with `max_age`, as OpenID Connect Core section 2 requires.
 * - an object: only after a setting at the provider.
 */
type AuthTime = 'always' | 'requested' | { readonly setting: string }

/** Absent: users do not sign in there with a browser, or no source says so. */
const AUTH_TIMES: Readonly<Partial<Record<PresetName, AuthTime>>> = {
  auth0: 'requested',
  cognito: 'always',
  'cognito-id': 'always',
  entra: { setting: 'the optional claim auth_time for ID tokens, in Token configuration' },
  google: {
    setting:
      'Session age claims, in the advanced settings of the Google Auth Platform; the app must be verified',
  },
  keycloak: 'always',
  logto: 'requested',
  okta: 'always',
  ory: 'always',
  zitadel: 'always',
}

/** Returns a sentence without a full stop. `preset` may be any text; `name` is shown without one. */
export function authTimeText(preset: string, name: string = preset): string {
  const known = Object.hasOwn(SOURCES, preset) ? (preset as PresetName) : undefined
  const provider = known === undefined ? name : SOURCES[known].name
  const authTime = known && AUTH_TIMES[known]
  switch (authTime) {
    case 'always':
      return `${provider} sends auth_time always`
    case 'requested':
      return `${provider} sends auth_time when max_age is requested`
    case undefined:
      return `no source says whether ${provider} sends auth_time; sign in once to see`
    default:
      return `${provider} sends auth_time only after a setting: ${authTime.setting}`
  }
}
