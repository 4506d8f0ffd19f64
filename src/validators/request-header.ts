/** Decides by name which request headers a client may send to the origin. */
import * as z from 'zod/mini'
import { type Mistake, mistakeAt } from '../problems/mistake.ts'
import { superRefine } from './checks.ts'

/** Lower-case names that no policy can forward, each for the reason above its line. */
// biome-ignore format: a table
const RESERVED: ReadonlySet<string> = new Set([
  // Hop by hop (RFC 9110 section 7.6.1).
  'connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'http2-settings',
  // The gateway sets these for the request to the origin.
  'host', 'content-length', 'expect', 'x-request-id', 'traceparent', 'tracestate',
  'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-port',
  // Forwarded only on routes with `forwardAuthorization` or `forwardCookies`.
  'authorization', 'dpop', 'cookie', 'cookie2',
  // For the gateway only.
  'x-consistency-token',
  // A response header.
  'set-cookie',
])

/**
 * Names that no policy can forward: of the gateway, of proxies, of Cloudflare, and with a character
 * other than letters, digits and hyphens. CGI and WSGI servers read `X_Auth_Subject`, and some also
 * `X.Auth.Subject`, as `X-Auth-Subject`.
 */
const RESERVED_FAMILY = /[^a-z0-9-]|^(?:x-auth|proxy|cf)-/

/** grpc-gateway removes the prefix `Grpc-Metadata-` before the service, and CGI adds `HTTP_`. */
const WRAPPER = /^(?:http-|grpc-metadata-|grpcgateway-)/
const WRAPPING = new RegExp(`${WRAPPER.source}+`)

/** First words of names that servers trust, after any `X-`. A word ends at a hyphen. */
const FIRST_WORDS = [
  // Headers of gateways, identity-aware proxies and single sign-on modules that name the caller.
  'auth(?:[nz]|enticat(?:ed|ion)|ori[sz]ed|entik|elia)?|remote|(?:anonymous-)?consumer|credentials?',
  'subject|claims|roles?|groups?|e?mail|permissions?|entitlements?|jwt|token(?=-)|(?:id|access)-token',
  'oauth2?|vouch|pomerium|webauth|tailscale|internal|endpoint-api|apigateway|goog-iap|ms-token',
  'amzn-(?:lattice|apigateway|vpc|source|waf)|iv(?=-)|sm(?=-)|smuser|osso|shib|mellon|eppn',
  'scope-orgid|appengine|cloud(?:front|tasks|scheduler)|hasura|(?:mscrm)?caller(?:object)?id',
  // Headers about the client's address or certificate, and headers of edge networks and meshes.
  'forward(?:er)?|real|client-(?:verif\\w*|port|address|subject|issuer|serial)|wl|arr|azure|fd',
  'fastly|fly|nf|akamai|sucuri|envoy|istio|l5d|dapr',
  // Headers that replace the method, path or scheme that the gateway has checked.
  '(?:http)?methods?|original|rewrite|rewritten|override|accel|sendfile|proxy|script-name|scheme',
  'proto|https|front-end-https|ur[il]|destination-?url|path|server-(?:name|port)|matched-path',
  '(?:base|context|ingress|request|root|(?:waws-)?unencoded)-(?:ur[il]|path)|invoke',
  'now-route-matches|middleware(?!-prefetch$)|nextjs(?!-data$)|astro',
]

/** Words that mark a name as trusted at any position between its hyphens. */
const WORDS = [
  'user(?!-(?:agent|project)(?:-|$))|user(?:id|name|info)|principal|identity|impersonate|oidc|saml',
  'authorization|token-binding|(?:client)?cert(?:s|ificate)?|m?tls|ssl|dn',
  // For another caller, where the gateway's own credential may act for anybody.
  'sudo|runas|(?:run|act)-as|on-behalf',
  'forwarded|proxied|(?:client|real|remote|source|user)?ip|ip(?:s|v[46])|addr|host(?:name)?',
]

/** Names with such words that browsers and clients of object stores send. They are not trusted. */
const ORDINARY = 'sec-fetch-user$|x-(?:amz|goog|ms)-meta-'

const TRUSTED = new RegExp(
  `^(?!${ORDINARY})(?:(?:x-|http-)*(?:${FIRST_WORDS.join('|')})|(?:.*-)?(?:${WORDS.join('|')}))(?:-|$)`,
)

export const isReserved = (name: string): boolean =>
  RESERVED.has(name) || RESERVED_FAMILY.test(name)

/** Returns a lower-case name without the prefixes that servers remove. */
export const unwrapped = (name: string): string => name.replace(WRAPPING, '')

export interface HeaderRules {
  /**
   * Names that a client cannot send to the origin. `X-Tenant-*` is a prefix. Each applies as well
   * behind `Grpc-Metadata-`, `Grpcgateway-` and `HTTP-`, which servers remove.
   */
  readonly stripHeaders?: readonly string[] | undefined
  /** Names that a client can send although common servers trust them, such as `X-User-Id`. */
  readonly keepHeaders?: readonly string[] | undefined
}

/** Limits the work for one name. No server uses a header with a longer name. */
const MAX_NAME_CHARS = 256
/** Far more than the headers that the clients of one gateway send. */
const MAX_CACHED_NAMES = 1_000

/** Creates the check whether a client's header may reach the origin, by its lower-case name. */
export function createHeaderCheck(rules: HeaderRules): (name: string) => boolean {
  const decide = createDecision(rules)
  const answers = new Map<string, boolean>()
  return function mayReachOrigin(name) {
    const cached = answers.get(name)
    if (cached !== undefined) return cached
    if (name.length > MAX_NAME_CHARS) return false
    if (answers.size >= MAX_CACHED_NAMES) answers.clear()
    const answer = decide(name)
    answers.set(name, answer)
    return answer
  }
}

function createDecision({ stripHeaders = [], keepHeaders = [] }: HeaderRules) {
  const kept = new Set(keepHeaders.map((name) => name.toLowerCase()))
  const stripped = new Set(stripHeaders.map((name) => name.toLowerCase()))
  const prefixes = [...stripped]
    .filter((name) => name.endsWith('*'))
    .map((name) => name.slice(0, -1))
  /** Also behind any number of prefixes that servers remove: each may be the last one to go. */
  const isListed = (name: string): boolean => {
    const inner = name.replace(WRAPPER, '')
    return (
      stripped.has(name) ||
      prefixes.some((prefix) => name.startsWith(prefix)) ||
      (inner !== name && isListed(inner))
    )
  }
  return (name: string): boolean =>
    !isReserved(unwrapped(name)) &&
    (kept.has(name) || !TRUSTED.test(unwrapped(name))) &&
    !isListed(name)
}

const NAME = /^[a-z0-9-]+$/i
const NAME_OR_FAMILY = /^[a-z0-9-]+\*?$/i

export const strippedHeader = z.string().check(
  z.maxLength(MAX_NAME_CHARS),
  z.regex(NAME_OR_FAMILY, {
    error: 'must contain only letters, digits and hyphens, and may end with *',
  }),
)

export const keptHeader = z.string().check(
  z.maxLength(MAX_NAME_CHARS),
  superRefine((name, context) => {
    const mistake = mistakeInKept(name)
    if (mistake !== undefined) context.addIssue({ code: 'custom', message: mistake })
  }),
)

function mistakeInKept(name: string): string | undefined {
  if (!NAME.test(name)) return 'must contain only letters, digits and hyphens'
  const lowerCase = unwrapped(name.toLowerCase())
  if (isReserved(lowerCase)) return `${name} cannot be kept: only the gateway may set it`
  if (!TRUSTED.test(lowerCase)) return `${name} is not stripped; remove it`
  return undefined
}

export function* mistakesInHeaders(rules: HeaderRules): Generator<Mistake> {
  const mayReachOrigin = createDecision(rules)
  for (const name of rules.keepHeaders ?? [])
    if (!mayReachOrigin(name.toLowerCase()))
      yield mistakeAt('conflict', ['keepHeaders'], `${name} is in stripHeaders as well; remove one`)
}
