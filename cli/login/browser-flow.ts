/** Login in the browser: the authorization code flow with PKCE and a loopback redirect (RFC 8252, RFC 7636). */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import * as oauth from 'oauth4webapi'
import { refused, undecided } from '../failure.ts'
import { openInBrowser } from '../live/browser.ts'
import { visible } from '../text.ts'
import { failureOf, loginOf, type Server } from './server.ts'
import type { Login } from './store.ts'

const HOST = '127.0.0.1'
const PATH = '/callback'
/** How long the person has in the browser. */
const PATIENCE_MS = 300_000
const PAGE_HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
  Connection: 'close',
}

export interface BrowserOptions {
  readonly scope: string
  /** RFC 8707. */
  readonly resource: string | undefined
  /** Port of the redirect URI. 0: a free one. */
  readonly port: number
  /** Whether a browser is started. The URL is printed in any case. */
  readonly opens: boolean
  readonly print: (text: string) => void
}

/** Resolves to the login. Throws a `Failure` if the person or the issuer refuses, or five minutes pass. */
export async function logInByBrowser(server: Server, options: BrowserOptions): Promise<Login> {
  const { metadata, client } = server
  if (metadata.authorization_endpoint === undefined)
    throw refused(
      'no_authorization_endpoint',
      `${visible(metadata.issuer)} has no authorization endpoint; try --device`,
    )
  const verifier = oauth.generateRandomCodeVerifier()
  const state = oauth.generateRandomState()
  const nonce = oauth.generateRandomNonce()
  const callback = await listenForCallback(options.port, state)
  try {
    const url = new URL(metadata.authorization_endpoint)
    const isOpenId = options.scope.split(' ').includes('openid')
    const parameters = {
      response_type: 'code',
      client_id: client.client_id,
      redirect_uri: callback.redirectUri,
      scope: options.scope,
      state,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      ...(isOpenId && { nonce }),
      ...(options.resource !== undefined && { resource: options.resource }),
    }
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
    options.print(`Log in with your browser: ${url}`)
    if (options.opens && /^https?:$/.test(url.protocol)) await openInBrowser(url.href)
    const parameterOfCallback = oauth.validateAuthResponse(
      metadata,
      client,
      await callback.parameters,
      state,
    )
    const response = await oauth.authorizationCodeGrantRequest(
      metadata,
      client,
      oauth.None(),
      parameterOfCallback,
      callback.redirectUri,
      verifier,
      {
        ...server.options,
        ...(options.resource !== undefined && {
          additionalParameters: { resource: options.resource },
        }),
      },
    )
    const tokens = await oauth.processAuthorizationCodeResponse(
      metadata,
      client,
      response,
      isOpenId ? { expectedNonce: nonce, requireIdToken: true } : {},
    )
    return loginOf(server, tokens, { resource: options.resource })
  } catch (error) {
    throw failureOf(error, metadata.issuer)
  } finally {
    callback.close()
  }
}

/** Answers one navigation to the redirect URI that has the state. All other requests are 404 and change nothing. */
async function listenForCallback(port: number, state: string) {
  const { promise, resolve, reject } = Promise.withResolvers<URLSearchParams>()
  promise.catch(() => {})
  const http = createServer((request, response) => {
    const { port: own } = http.address() as AddressInfo
    const url = new URL(request.url ?? '/', `http://${HOST}:${own}`)
    // Another page could reach this server under a name of its own.
    const isOurs =
      request.method === 'GET' &&
      request.headers.host === `${HOST}:${own}` &&
      url.pathname === PATH &&
      url.searchParams.get('state') === state
    if (!isOurs) {
      response.writeHead(404, PAGE_HEADERS).end()
      return
    }
    const text = url.searchParams.has('error') ? 'The login was refused' : 'You are logged in'
    response.writeHead(200, PAGE_HEADERS)
    response.end(
      `<!doctype html><html lang="en"><title>${text}</title><h1>${text}</h1><p>You can close this page and return to the terminal.</p></html>`,
    )
    resolve(url.searchParams)
  })
  await new Promise<void>((listening, failed) => {
    http.once('error', failed).listen(port, HOST, listening)
  }).catch((error: NodeJS.ErrnoException) => {
    throw refused('port_in_use', `port ${port} on ${HOST}: ${error.code}`)
  })
  const timer = setTimeout(
    () => reject(undecided('login_timeout', 'there was no login within 5 minutes')),
    PATIENCE_MS,
  )
  const { port: own } = http.address() as AddressInfo
  return {
    redirectUri: `http://${HOST}:${own}${PATH}`,
    parameters: promise,
    close(): void {
      clearTimeout(timer)
      http.close()
      http.closeAllConnections()
    },
  }
}
