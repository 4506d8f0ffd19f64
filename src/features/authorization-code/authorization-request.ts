/** Parses the parameters of a request to the authorization endpoint (RFC 6749 section 4.1.1). */
import * as z from 'zod/mini'
import { oauthRefused } from '../../access/tokens/rejection.ts'
import { parseStrictJson } from '../../http/strict-json.ts'
import type { OAuthErrorCode } from '../../problems/reasons.ts'
import type { OAuthForm } from '../authorization-server/form.ts'
import { namesIn } from '../authorization-server/scope.ts'
import { isResource } from '../authorization-server/target.ts'

const MAX_STATE_CHARS = 2_048
const MAX_RESOURCES = 5
const MAX_ACR_CHARS = 1_024
const MAX_CLAIMS_CHARS = 4_096
/** More than OpenID Connect Core section 5.5 has. */
const MAX_CLAIMS_DEPTH = 8
/** base64url SHA-256: a challenge of PKCE, or the thumbprint of a key. */
const SHA256 = z.string().check(z.regex(/^[\w-]{43}$/))

/** Values of `acr`, separated by spaces. */
const acrValues = z
  .string()
  .check(
    z.maxLength(MAX_ACR_CHARS),
    z.regex(/^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/),
  )

/** The part of `claims` (OpenID Connect Core section 5.5) that is about the login. Others are ignored. */
const claimsRequest = z.object({
  id_token: z.optional(
    z.nullable(
      z.object({
        acr: z.optional(
          z.nullable(
            z.object({
              essential: z.optional(z.boolean()),
              value: z.optional(z.string()),
              values: z.optional(z.array(z.string())),
            }),
          ),
        ),
      }),
    ),
  ),
})

const PROMPTS = ['none', 'login', 'consent', 'select_account'] as const
export type Prompt = (typeof PROMPTS)[number]

const parameters = z.object({
  response_type: z.literal('code'),
  response_mode: z.optional(z.literal('query')),
  state: z.optional(z.string().check(z.maxLength(MAX_STATE_CHARS))),
  // RFC 9700 section 2.1.1. `plain` would let a reader of the request redeem the code.
  code_challenge: SHA256,
  code_challenge_method: z.literal('S256'),
  prompt: z.optional(
    z
      .string()
      .check(
        z.regex(
          /^(?:none|(?:login|consent|select_account)(?: (?:login|consent|select_account)){0,2})$/,
        ),
      ),
  ),
  max_age: z.optional(z.string().check(z.regex(/^\d{1,9}$/))),
  acr_values: z.optional(acrValues),
  claims: z.optional(z.string().check(z.maxLength(MAX_CLAIMS_CHARS))),
  dpop_jkt: z.optional(SHA256),
  // RFC 9101. PAR is the way to protect the parameters.
  request: z.optional(z.never()),
})

const NAMES = Object.keys(parameters.shape) as (keyof typeof parameters.shape)[]

/**
 * Errors of parameters with a value that is not supported (RFC 6749 section 4.1.2.1). Other mistakes,
 * and parameters that are missing, are `invalid_request`.
 */
const ERRORS: Readonly<Partial<Record<PropertyKey, OAuthErrorCode>>> = {
  response_type: 'unsupported_response_type',
  request: 'request_not_supported',
}

/** The parameters that do not identify the client. Nothing has been decided about them. */
export type AuthorizationRequest = ReturnType<typeof parseAuthorizationRequest>

/** Throws `Denied` (`oauth_refused`) for the first parameter that is missing or wrong. */
export function parseAuthorizationRequest(form: OAuthForm) {
  const given = Object.fromEntries(
    NAMES.flatMap((name) => {
      const value = form.one(name)
      return value === undefined ? [] : [[name, value]]
    }),
  )
  const result = z.safeParse(parameters, given)
  if (!result.success) {
    const name = result.error.issues[0]?.path[0] as (typeof NAMES)[number]
    const error = Object.hasOwn(given, name) ? ERRORS[name] : undefined
    throw oauthRefused(error ?? 'invalid_request', `authorize_${name}`)
  }
  const { data } = result
  const scope = form.one('scope')
  const resources = [...new Set(form.all('resource'))]
  if (resources.length > MAX_RESOURCES || !resources.every(isResource))
    throw oauthRefused('invalid_target', 'resource_malformed')
  return {
    state: data.state,
    challenge: data.code_challenge,
    /** Undefined: the client requests everything that it may have. */
    scope: scope === undefined ? undefined : namesIn(scope),
    resources,
    prompts: new Set((data.prompt?.split(' ') ?? []) as Prompt[]),
    maxAgeSeconds: data.max_age === undefined ? undefined : Number(data.max_age),
    /** Accepted authentication context classes, the preferred one first. Undefined: any. */
    acr: essentialAcr(data.claims) ?? data.acr_values?.split(' '),
    /** Thumbprint of the key that the tokens will be bound to (RFC 9449 section 10). */
    dpopKey: data.dpop_jkt,
  }
}

/**
 * Returns the accepted values of an `acr` that is requested as an essential claim: the login must have one of
 * them (OpenID Connect Core section 5.5.1.1). Undefined: none is requested so. Throws `Denied`
 * (`invalid_request`) for text that is no request for claims, or that has two readings.
 */
function essentialAcr(text: string | undefined): readonly string[] | undefined {
  if (text === undefined) return undefined
  const { acr } = readClaims(text)?.id_token ?? {}
  if (acr?.essential !== true) return undefined
  const { value, values = value === undefined ? undefined : [value] } = acr
  if (values === undefined) return undefined
  const isAcr = (one: string) => !one.includes(' ')
  const hasBoth = value !== undefined && acr.values !== undefined
  // An empty list is no `acr` either.
  if (hasBoth || !values.every(isAcr) || !acrValues.safeParse(values.join(' ')).success)
    throw oauthRefused('invalid_request', 'authorize_claims')
  return values
}

function readClaims(text: string) {
  try {
    return claimsRequest.parse(parseStrictJson(text, { maxDepth: MAX_CLAIMS_DEPTH }))
  } catch (cause) {
    throw oauthRefused('invalid_request', 'authorize_claims', { cause })
  }
}

/** Returns the parameters that the authorization endpoint reads, form-encoded, with this `dpop_jkt`. */
export function formatParameters(form: OAuthForm, dpopKey: string | undefined): string {
  const text = new URLSearchParams()
  for (const name of ['client_id', 'redirect_uri', 'scope', 'ui_locales', ...NAMES]) {
    const value = form.one(name)
    if (value !== undefined) text.set(name, value)
  }
  for (const resource of form.all('resource')) text.append('resource', resource)
  if (dpopKey !== undefined) text.set('dpop_jkt', dpopKey)
  return text.toString()
}
