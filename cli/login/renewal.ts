/** The access token of a login: renewed when it expires, and ended at the logout. */
import * as oauth from 'oauth4webapi'
import { refused } from '../failure.ts'
import { failureOf, loginOf, serverOf } from './server.ts'
import { alone, type Login, loginFor, saveLogin } from './store.ts'

/** The token is renewed this long before it expires. */
const RENEW_MS = 30_000
const EXPIRED = 'the login has expired; run: portcullis login'

const isFresh = ({ expiresAtMs }: Login): boolean =>
  expiresAtMs === undefined || Date.now() < expiresAtMs - RENEW_MS

/** Returns an access token for the gateway. Throws a `Failure` if the person must log in again. */
export async function accessTokenFor(url: string): Promise<string> {
  const login = loginFor(url)
  if (login !== undefined && isFresh(login)) return login.accessToken
  return await alone(async () => {
    // Another command may have renewed it.
    const now = loginFor(url)
    if (now !== undefined && isFresh(now)) return now.accessToken
    if (now?.refreshToken === undefined) throw refused('login_expired', EXPIRED)
    const renewed = await renew(now, now.refreshToken)
    // Not over those of another command: this process may have been suspended, and its lock removed.
    if (loginFor(url)?.refreshToken === now.refreshToken) saveLogin(url, renewed)
    return renewed.accessToken
  })
}

async function renew(login: Login, refreshToken: string): Promise<Login> {
  const { metadata, client, options } = serverOf(login)
  try {
    const response = await oauth.refreshTokenGrantRequest(
      metadata,
      client,
      oauth.None(),
      refreshToken,
      {
        ...options,
        ...(login.resource !== undefined && { additionalParameters: { resource: login.resource } }),
      },
    )
    const tokens = await oauth.processRefreshTokenResponse(metadata, client, response)
    return loginOf({ metadata, client }, tokens, login)
  } catch (error) {
    if (error instanceof oauth.ResponseBodyError && error.error === 'invalid_grant')
      throw refused('login_expired', EXPIRED)
    throw failureOf(error, login.issuer)
  }
}

const isUnsupported = (error: Error): boolean =>
  error instanceof oauth.ResponseBodyError && error.error === 'unsupported_token_type'

/** Removes a login, and revokes its tokens at the issuer. Returns why they were not revoked, or undefined. */
export async function endLogin(url: string, login: Login): Promise<string | undefined> {
  return await alone(async () => {
    saveLogin(url, undefined)
    if (login.revocationEndpoint === undefined) return 'the issuer cannot revoke tokens'
    const { metadata, client, options } = serverOf(login)
    try {
      for (const token of [login.refreshToken, login.accessToken]) {
        if (token === undefined) continue
        const response = await oauth.revocationRequest(
          metadata,
          client,
          oauth.None(),
          token,
          options,
        )
        await oauth.processRevocationResponse(response).catch((error: Error) => {
          // Many issuers cannot revoke a JWT (RFC 7009 section 2.2.1). It is short-lived.
          if (
            token === login.accessToken &&
            login.refreshToken !== undefined &&
            isUnsupported(error)
          )
            return
          throw error
        })
      }
      return undefined
    } catch (error) {
      return failureOf(error, login.issuer).message
    }
  })
}
