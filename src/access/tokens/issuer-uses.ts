/** The rules of an issuer for each use of its tokens. All code that verifies a token gets them here. */
import { PRESETS } from '../../identity-providers/presets.ts'
import {
  type IssuerConfig,
  idTokenAlgorithmOf,
  MARKS_OF_OTHER_TOKENS,
  NO_TYPE,
} from '../../validators/issuer.ts'
import { KIND_CLAIMS } from './issuer-rules.ts'

/** What a token is verified for, other than access. */
export type TokenUse =
  /** A login at the gateway, which is the client `client` at the issuer. */
  | {
      readonly use: 'id_token'
      readonly client: string
      /** Replaces the rules of the issuer. */
      readonly require: IssuerConfig['require']
    }
  /** A token for a user, by an identity assertion (ID-JAG) for `audience`, the gateway. */
  | { readonly use: 'assertion'; readonly audience: string }

/** Rules for every use. */
type Kept =
  | ('issuer' | 'tenants' | 'jwksUri' | 'jwks' | 'clockTolerance')
  | ('subjectClaim' | 'tenantClaim' | 'planClaim' | 'sessionClaim')
  | ('rolesClaim' | 'rolesSeparator' | 'rolesMap' | 'scopeClaim' | 'scopesMap' | 'scopes')
  | ('identityHeaders' | 'keySet')
  // These apply to access tokens, or to logout tokens, only, and nothing else reads them.
  | ('tokenSources' | 'introspection' | 'userinfo' | 'logoutTokenExp' | 'idTokenAlgorithm')

/** Rules that {@link issuerFor} decides about for each use. */
type Decided = Pick<
  IssuerConfig,
  | (
      | 'algorithms'
      | 'typ'
      | 'tokenUse'
      | 'maxTokenAge'
      | 'audience'
      | 'audienceClaim'
      | 'clientClaim'
    )
  | ('tokenIdClaim' | 'clients' | 'refuse' | 'require')
>

/** Types of ID tokens. Most providers set one of these. */
const ID_TOKEN_TYPES = ['JWT', NO_TYPE]
/** An ID token is used once, so its life does not matter. */
const ANY_AGE_SECONDS = Number.MAX_SAFE_INTEGER
/** No other token of a provider has it. */
const ASSERTION_TYPE = 'oauth-id-jag+jwt'
/** Providers issue them for one exchange. */
const MAX_ASSERTION_SECONDS = 600

/**
 * Returns an issuer's configuration for another use than access: with all of its rules, except those
 * about the kind of the token, which the use has itself. An access token in any form (in a header or a
 * cookie, by introspection or UserInfo, as a subject token) has the configuration as it is.
 */
export function issuerFor(config: IssuerConfig, use: TokenUse): IssuerConfig {
  return { ...config, ...(use.use === 'id_token' ? forLogin(config, use) : forGrant(config, use)) }
}

/** Every rule is in one of the lists, so that a new one is decided. */
type Undecided = Exclude<keyof IssuerConfig, Kept | keyof Decided>
type Rules = Undecided extends never ? Readonly<Required<Decided>> : Undecided

/** The client is the gateway itself, whichever clients get access tokens. */
function forLogin(
  config: IssuerConfig,
  { client, require }: TokenUse & { readonly use: 'id_token' },
): Rules {
  const { refuse = [] } = config
  return {
    algorithms: [idTokenAlgorithmOf(config)],
    typ: ID_TOKEN_TYPES,
    tokenUse: 'id',
    maxTokenAge: ANY_AGE_SECONDS,
    audience: client,
    audienceClaim: undefined,
    clientClaim: config.clientClaim,
    tokenIdClaim: config.tokenIdClaim,
    clients: undefined,
    refuse: ['events', ...refuse.filter((name) => !MARKS_OF_OTHER_TOKENS.includes(name))],
    require: require ?? rulesAboutUsers(config),
  }
}

/**
 * Returns the rules for identity assertions. Only `client_id` names the client; no other claim is read
 * instead. `aud` must be the gateway as well; the caller checks that.
 */
function forGrant(
  config: IssuerConfig,
  { audience }: TokenUse & { readonly use: 'assertion' },
): Rules {
  const { audienceClaim } = config
  return {
    algorithms: config.algorithms,
    typ: ASSERTION_TYPE,
    tokenUse: undefined,
    maxTokenAge: Math.min(MAX_ASSERTION_SECONDS, config.maxTokenAge),
    audience: audienceClaim === undefined ? audience : [audience, config.audience].flat(),
    audienceClaim,
    clientClaim: 'client_id',
    tokenIdClaim: 'jti',
    clients: config.clients,
    refuse: config.refuse ?? [],
    require: rulesAboutUsers(config),
  }
}

/** Returns the required claims without those that name the kind of an access token. */
function rulesAboutUsers({ require = {} }: IssuerConfig): IssuerConfig['require'] {
  return Object.fromEntries(
    Object.entries(require).filter(
      ([name, value]) => !KIND_CLAIMS.includes(name) && !isOfAccessTokens(name, value),
    ),
  )
}

/** Presets with a rule on a claim that other tokens do not have, or have with another value. */
const ACCESS_TOKEN_RULES: readonly Readonly<Record<string, string>>[] = [
  PRESETS.authentik.require,
  PRESETS.fusionauth.require,
  PRESETS.okta.require,
  PRESETS.zitadel.require,
]

const isOfAccessTokens = (name: string, value: unknown): boolean =>
  ACCESS_TOKEN_RULES.some((rules) => Object.hasOwn(rules, name) && rules[name] === value)
