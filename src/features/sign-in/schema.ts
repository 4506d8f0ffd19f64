/** Schema of the sign-in of a policy. */
import * as z from 'zod/mini'
import { authenticationSchema } from '../../validators/authentication.ts'
import { superRefine } from '../../validators/checks.ts'
import { requirements } from '../../validators/claim-requirements.ts'
import { roleNames } from '../../validators/names.ts'
import { requestedScope, text, wholeNumber, withShorthand } from '../../validators/schema-parts.ts'
import { privateUrl } from '../../validators/variables.ts'
import { ENGLISH } from './rendering/english.ts'
import { mistakesInTexts } from './rendering/language.ts'

/** A value of one CSS property. It cannot end the declaration, or load anything. */
const cssValue = z.string().check(
  z.maxLength(200),
  z.regex(/^[\w #%.,()'-]+$/, 'must be a CSS value such as #0a5 or Georgia, serif'),
  z.refine((value) => !/url|image|expression/i.test(value), 'must not load anything'),
)

const theme = z.partial(
  z.strictObject({
    font: cssValue,
    background: cssValue,
    text: cssValue,
    accent: cssValue,
    radius: cssValue,
  }),
)

/** A path of this host. `//` would name another host. */
const ownPath = z
  .string()
  .check(
    z.maxLength(1_024),
    z.regex(/^\/(?![/\\])[\w\-./~%?=&+]*$/, 'must be a path of this host such as /logo.svg'),
  )

/** In base64, so that no character needs an escape. */
const PICTURE = /^data:image\/(?:png|jpeg|webp|svg\+xml);base64,[A-Za-z\d+/]+={0,2}$/

/** A picture that the browser gets from this host, or from the page itself. */
const picture = z.union(
  [ownPath, z.string().check(z.maxLength(32_768), z.regex(PICTURE))],
  'must be a path of this host such as /logo.svg, or a data: URL of PNG, JPEG, WebP or SVG in base64 of at most 32,768 characters',
)

const pageTexts = z.record(z.string(), text(400))

const pageLink = z.union([ownPath, privateUrl], 'must be an https URL, or a path of this host')

/** Other features check their own texts when the gateway starts. */
const language = z
  .strictObject({
    tag: text(64).check(z.refine(isLanguageTag, 'must be a language tag such as de or pt-BR')),
    direction: z.optional(z.enum(['ltr', 'rtl'])),
    texts: z.partial(
      z.strictObject({ signIn: pageTexts, authorizationCode: pageTexts, scopes: pageTexts }),
    ),
  })
  .check(
    superRefine(({ texts: { signIn = {} } }, context) => {
      for (const [name, message] of mistakesInTexts(signIn, ENGLISH))
        context.addIssue({ code: 'custom', path: ['texts', 'signIn', name], message })
    }),
  )

function isLanguageTag(tag: string): boolean {
  try {
    return Intl.getCanonicalLocales(tag)[0] === tag
  } catch {
    return false
  }
}

const branding = z.partial(
  z.strictObject({
    name: text(80),
    logo: picture,
    languages: z.array(language),
    links: z.partial(z.strictObject({ privacy: pageLink, terms: pageLink, support: pageLink })),
  }),
)

/** The field `session` of a route. */
export const sessionDemandSchema = withShorthand('browser', {}, authenticationSchema)

/** Parameters of an authorization request that the sign-in sets itself, or that change its response. */
const OWN_PARAMETERS: readonly string[] = [
  ...['response_type', 'response_mode', 'client_id', 'redirect_uri', 'scope', 'state', 'nonce'],
  ...['code_challenge', 'code_challenge_method', 'request', 'request_uri'],
]

/** The field `signIn` of an entry of `ISSUER_CLIENTS`. */
export const signInClientSchema = z.strictObject({
  name: text(80),
  logo: z.optional(picture),
  preset: z.optional(z.literal('github')),
  apiUrl: z.optional(privateUrl),
  scope: z._default(
    requestedScope().check(
      z.refine((scope) => scope.split(' ').includes('openid'), 'must contain openid'),
    ),
    'openid',
  ),
  require: z.optional(requirements),
  parameters: z.optional(
    z.record(
      text(64).check(
        z.refine((name) => !OWN_PARAMETERS.includes(name), 'is set by the sign-in itself'),
      ),
      text(1_024),
    ),
  ),
  signOut: z.optional(z.strictObject({ url: privateUrl, returnTo: text(64) })),
  callback: z.optional(z.enum(['shared', 'own'])),
  pushedRequests: z.optional(z.boolean()),
  userInfo: z.optional(z.enum(['auto', 'required', 'never'])),
})

/** The sign-out of a provider without RP-Initiated Logout. */
interface SignOutSettings {
  /** Its URL: https, or http on a loopback address. */
  readonly url: string
  /** The name of the parameter for the page that follows. */
  readonly returnTo: string
}

/** How users sign in with a client of the gateway at an issuer. */
export interface SignInSettings {
  /** For the page on which a user chooses between several providers. */
  readonly name: string
  /** A picture beside the name: a path of this host, or a `data:` URL. Default none. */
  readonly logo?: string | undefined
  /** A provider that speaks OAuth 2.0 without OpenID Connect. Default: an OpenID Provider. */
  readonly preset?: 'github' | undefined
  /** The API of such a provider. Default: that of github.com, or `/api/v3` at another issuer. */
  readonly apiUrl?: string | undefined
  /** Requested scopes, separated by spaces, `openid` among them. Default `openid`. */
  readonly scope: string
  /** Rules for ID tokens. Default: those of the issuer, except for kinds of tokens. */
  readonly require?: z.output<typeof requirements> | undefined
  /** Further parameters of the authorization request. */
  readonly parameters?: Readonly<Record<string, string>> | undefined
  /**
   * The sign-out of a provider without RP-Initiated Logout. Default: `end_session_endpoint` of its metadata.
   */
  readonly signOut?: SignOutSettings | undefined
  /**
   * `own`: the callback of this provider alone; `shared`: that of all. Default: `shared` with one
   * provider, and for a provider that announces `iss` in its responses (RFC 9207); otherwise `own`.
   */
  readonly callback?: 'shared' | 'own' | undefined
  /** Whether requests are pushed (RFC 9126). Default: where the provider's metadata requires it. */
  readonly pushedRequests?: boolean | undefined
  /**
   * Whether claims that the ID token lacks come from the UserInfo endpoint. `auto`: where the provider has
   * one and accepts its access token there; `required`: a login fails without it. Default `auto`.
   */
  readonly userInfo?: 'auto' | 'required' | 'never' | undefined
}

const MAX_SECONDS = 2_592_000

export const signInSchema = z
  .partial(
    z.strictObject({
      idleSeconds: wholeNumber(60, MAX_SECONDS),
      absoluteSeconds: wholeNumber(60, MAX_SECONDS),
      maxSessions: wholeNumber(1, 1_000),
      roles: roleNames,
      requestsPerMinute: wholeNumber(1, 1_000_000),
      theme,
      branding,
    }),
  )
  .check(
    superRefine(({ idleSeconds, absoluteSeconds }, context) => {
      if (idleSeconds === undefined || absoluteSeconds === undefined) return
      if (idleSeconds <= absoluteSeconds) return
      const message = 'must not be longer than absoluteSeconds'
      context.addIssue({ code: 'custom', path: ['idleSeconds'], message })
    }),
  )
