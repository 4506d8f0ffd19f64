/** Recognizes the provider of a token, and how two issuers of one provider differ. */

import { metadataUrlsOf } from '../../src/access/tokens/discovery.ts'
import { shown } from '../../src/access/tokens/rejection.ts'
import type { PresetName } from '../../src/identity-providers/presets.ts'
import { SOURCES } from '../../src/identity-providers/sources.ts'
import type { Fields } from './check.ts'

interface Mark {
  readonly issuer?: RegExp
  /** A claim that only tokens of this provider have. */
  readonly claim?: string
}

/**
 * Marks of issuers and tokens, in the order in which they are tried. `cognito-id` is absent: the
 * issuer is that of `cognito`, and ID tokens are not for APIs.
 */
const MARKS: readonly (readonly [PresetName, Mark])[] = [
  ['auth0', { issuer: /^https:\/\/[^/]+\.auth0\.com\// }],
  ['authentik', { issuer: /\/application\/o\/[^/]+\/?$/ }],
  ['clerk', { issuer: /^https:\/\/(clerk\.[^/]+|[^/]+\.clerk\.accounts\.dev)$/, claim: 'sts' }],
  ['cloudflare-access', { issuer: /^https:\/\/[^/]+\.cloudflareaccess\.com\/?$/ }],
  ['cognito', { issuer: /^https:\/\/cognito-idp\./ }],
  ['descope', { issuer: /^https:\/\/api\.descope\.com\//, claim: 'drn' }],
  ['entra', { issuer: /^https:\/\/(login\.microsoftonline\.com|sts\.windows\.net)\// }],
  ['firebase', { issuer: /^https:\/\/securetoken\.google\.com\// }],
  ['github-actions', { issuer: /^https:\/\/token\.actions\.githubusercontent\.com/ }],
  ['gitlab-ci', { issuer: /^https:\/\/gitlab\.com\/?$/, claim: 'namespace_path' }],
  ['google', { issuer: /^https:\/\/accounts\.google\.com\/?$/ }],
  ['keycloak', { issuer: /\/realms\/[^/]+\/?$/ }],
  ['kubernetes', { issuer: /^https:\/\/oidc\.eks\./, claim: 'kubernetes.io' }],
  ['logto', { issuer: /^https:\/\/[^/]+\.logto\.app\/oidc\/?$/ }],
  ['okta', { issuer: /^https:\/\/[^/]+\.okta(preview|-emea)?\.com\// }],
  ['ory', { issuer: /^https:\/\/[^/]+\.oryapis\.com\/?$/ }],
  ['ping', { issuer: /^https:\/\/auth\.pingone\./ }],
  ['stytch', { issuer: /^stytch\.com\//, claim: 'https://stytch.com/session' }],
  ['supabase', { issuer: /^https:\/\/[^/]+\.supabase\.co\/auth\/v1\/?$/ }],
  ['workos', { issuer: /^https:\/\/api\.workos\.com\/user_management\// }],
  ['zitadel', { issuer: /^https:\/\/[^/]+\.zitadel\.cloud\/?$/ }],
  ['fusionauth', { issuer: /^https:\/\/[^/]+\.fusionauth\.io\/?$/, claim: 'applicationId' }],
]

/** Returns the preset for an issuer: by its URL, or else by a claim. Undefined for other providers. */
export function presetOf(issuer: string, payload: Fields = {}): PresetName | undefined {
  const [byIssuer] = MARKS.find(([, mark]) => mark.issuer?.test(issuer)) ?? []
  if (byIssuer !== undefined) return byIssuer
  return MARKS.find(([, { claim }]) => claim !== undefined && Object.hasOwn(payload, claim))?.[0]
}

/** Reports whether both presets are for tokens of one issuer. */
export const isSameProvider = (a: string, b: string): boolean =>
  a === b || [a, b].every((name) => /^cognito(-id)?$/.test(name))

/** Returns the name of a provider: `Keycloak`. */
export const providerOf = (preset: PresetName): string => SOURCES[preset].name

/** How the issuer of a token differs from a configured one. */
export interface Difference {
  /** One sentence without a full stop. */
  readonly mistake: string
  readonly remedy: string
  /** Whether both names mean the same issuer. */
  readonly isSpelling: boolean
}

const COGNITO = /^https:\/\/cognito-idp\.([\w-]+)\.amazonaws\.com\/([\w-]+)\/?$/

/**
 * Returns how two issuers differ that probably belong to one provider. Undefined if they have
 * nothing in common. `of` names the configured one: `ISSUERS[0]`.
 */
export function differenceOf(seen: string, configured: string, of: string): Difference | undefined {
  const spelling = (mistake: string): Difference => ({
    mistake,
    remedy:
      'Write the issuer exactly as in iss of the token: it is compared character by character',
    isSpelling: true,
  })
  const other = (what: string): Difference => ({
    mistake: `the token is of another ${what}: its issuer is ${shown(seen)}, and ${of} has ${shown(configured)}`,
    remedy: `Request the token from the configured ${what}. Change the issuer only if tokens of the other one must be accepted instead`,
    isSpelling: false,
  })
  if (seen === `${configured}/`) {
    return spelling(`the issuer ${shown(seen)} ends with a slash, and that of ${of} does not`)
  }
  if (configured === `${seen}/`) {
    return spelling(`the issuer ${shown(seen)} has no slash at its end, and that of ${of} has one`)
  }
  if (seen.toLowerCase() === configured.toLowerCase()) {
    return spelling(`the issuer ${shown(seen)} and that of ${of} differ in upper and lower case`)
  }
  const [, region, pool] = COGNITO.exec(seen) ?? []
  const [, ownRegion, ownPool] = COGNITO.exec(configured) ?? []
  if (region !== undefined && ownRegion !== undefined) {
    return other(
      region === ownRegion ? 'user pool' : pool === ownPool ? 'region' : 'region and user pool',
    )
  }
  if (!URL.canParse(seen) || !URL.canParse(configured)) return undefined
  const [a, b] = [new URL(seen), new URL(configured)]
  if (a.host === b.host && a.protocol !== b.protocol && a.pathname === b.pathname) {
    return spelling(`the issuer ${shown(seen)} and that of ${of} differ in http and https`)
  }
  if (a.host === b.host) return other(/\/realms\//.test(seen) ? 'realm' : 'tenant')
  const preset = presetOf(seen)
  const isKnown = preset !== undefined && preset === presetOf(configured)
  if (isKnown && preset !== 'keycloak' && preset !== 'authentik') return other('tenant')
  return undefined
}

/** Reports whether both issuers have their metadata at the same URL. */
export function hasSameMetadata(a: string, b: string): boolean {
  if (a === b) return true
  return URL.canParse(a) && URL.canParse(b) && metadataUrlsOf(a)[0] === metadataUrlsOf(b)[0]
}
