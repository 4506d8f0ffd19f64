/** Reads the response of a token endpoint. */
import * as oauth from 'oauth4webapi'
import { hasValue } from '../tokens/present.ts'

/** The members that the sign-in uses. Null and empty ones count as absent. */
export interface TokenResponse {
  readonly idToken: string | undefined
  readonly refreshToken: string | undefined
  /** Seconds. Undefined: the provider does not say. */
  readonly expiresIn: number | undefined
}

const READ = ['access_token', 'token_type', 'expires_in', 'refresh_token'] as const

/**
 * Reads a response, and checks it as the library does, except for the ID token: the caller verifies
 * that. Members that the sign-in does not use, such as `scope`, cannot fail a login. Throws as the
 * library does.
 */
export async function readTokenResponse(
  as: oauth.AuthorizationServer,
  client: oauth.Client,
  response: Response,
): Promise<TokenResponse> {
  const members = response.status === 200 ? membersIn(await response.clone().text()) : undefined
  if (members === undefined) {
    // Throws: this is an error, or no JSON object.
    await oauth.processGenericTokenEndpointResponse(as, client, response)
    return { idToken: undefined, refreshToken: undefined, expiresIn: undefined }
  }
  const { status, headers } = response
  const kept = Object.fromEntries(
    READ.flatMap((name) => (hasValue(members[name]) ? [[name, members[name]]] : [])),
  )
  const read = await oauth.processGenericTokenEndpointResponse(
    as,
    client,
    new Response(JSON.stringify(kept), { status, headers }),
  )
  const { id_token: idToken } = members
  return {
    idToken: typeof idToken === 'string' && idToken !== '' ? idToken : undefined,
    refreshToken: read.refresh_token,
    expiresIn: read.expires_in,
  }
}

function membersIn(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>
  } catch {
    // The library reports it.
  }
  return undefined
}
