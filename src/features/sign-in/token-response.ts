/** Reads the response of a token endpoint. */
import * as oauth from 'oauth4webapi'
import { present } from '../../access/tokens/present.ts'
import { parseStrictJson } from '../../http/strict-json.ts'

/** The members that the sign-in uses. Null and empty ones count as absent. */
export interface TokenResponse {
  readonly idToken: string | undefined
  /** For UserInfo. Undefined without one that can be sent as a bearer token (RFC 6750 section 2.1). */
  readonly accessToken: string | undefined
  readonly refreshToken: string | undefined
  /** Seconds. Undefined: the provider does not say. */
  readonly expiresIn: number | undefined
}

/** A year. The time of the next refresh must be one that a record can have. */
const MAX_LIFE_SECONDS = 31_536_000
/** Members that the library demands, and that a login may lack. Some providers omit them, or send another type. */
const UNUSED = { access_token: 'unused', token_type: 'bearer' }

/**
 * Reads a response. Only an error, or a response that is no JSON object, fails: members that the
 * sign-in does not use cannot fail a login, and the caller verifies the ID token. An error with status
 * 200 is an error. Throws as the library does.
 */
export async function readTokenResponse(
  as: oauth.AuthorizationServer,
  client: oauth.Client,
  response: Response,
): Promise<TokenResponse> {
  const members = response.status === 200 ? membersIn(await response.clone().text()) : undefined
  const { headers } = response
  const isError = members !== undefined && present(members, 'error') !== undefined
  const read =
    members === undefined
      ? response
      : isError
        ? new Response(JSON.stringify(members), { status: 400, headers })
        : new Response(JSON.stringify(UNUSED), { headers })
  await oauth.processGenericTokenEndpointResponse(as, client, read)
  return {
    idToken: textIn(members, 'id_token'),
    accessToken: bearerTokenIn(members),
    refreshToken: textIn(members, 'refresh_token'),
    expiresIn: secondsIn(members),
  }
}

type Members = Readonly<Record<string, unknown>>

export function textIn(members: Members = {}, name: string): string | undefined {
  const value = present(members, name)
  return typeof value === 'string' ? value : undefined
}

/** RFC 6750 section 2.1. */
const BEARER_TOKEN = /^[\w.~+/-]+=*$/

function bearerTokenIn(members: Members | undefined): string | undefined {
  const token = textIn(members, 'access_token')
  const type = textIn(members, 'token_type') ?? 'bearer'
  return token !== undefined && /^bearer$/i.test(type) && BEARER_TOKEN.test(token)
    ? token
    : undefined
}

/** A number, also as text. A life that is unknown or negative is not stated. */
function secondsIn(members: Members = {}): number | undefined {
  const value = present(members, 'expires_in')
  const seconds = typeof value === 'string' ? Number(value) : value
  return typeof seconds === 'number' && seconds >= 0
    ? Math.min(seconds, MAX_LIFE_SECONDS)
    : undefined
}

function membersIn(text: string): Members | undefined {
  try {
    const value = parseStrictJson(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Members
  } catch {
    // The library reports it.
  }
  return undefined
}
