/** A provider of OpenID Connect on this machine. Each login, by one button, is that of a new user. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'

const LIFE_SECONDS = 600
const LOGIN_PAGE = '<title>Provider</title><form method=post><button>Log in</button></form>'

/** A running provider, and the client that the gateway has there. */
export interface LoginProvider {
  readonly issuer: string
  readonly client: { readonly id: string; readonly secret: string }
  close(): void
}

/** Starts a provider whose users have a role. It accepts any client: use it on this machine only. */
export async function startProvider(role: string): Promise<LoginProvider> {
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  const key = { ...(await exportJWK(publicKey)), kid: 'login', alg: 'ES256', use: 'sig' }
  const client = { id: 'gateway', secret: randomBytes(16).toString('hex') }
  const nonces = new Map<string, string>()
  let issuer = ''
  let users = 0

  async function answer(request: IncomingMessage): Promise<object | URL | string> {
    const url = new URL(request.url ?? '/', issuer)
    switch (url.pathname) {
      case '/authorize': {
        if (request.method === 'GET') return LOGIN_PAGE
        const code = randomBytes(16).toString('hex')
        nonces.set(code, url.searchParams.get('nonce') ?? '')
        const back = new URL(url.searchParams.get('redirect_uri') ?? issuer)
        back.searchParams.set('code', code)
        back.searchParams.set('state', url.searchParams.get('state') ?? '')
        return back
      }
      case '/token':
        return tokens(new URLSearchParams(await textOf(request)).get('code') ?? '')
      case '/jwks':
        return { keys: [key] }
      default:
        return {
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          jwks_uri: `${issuer}/jwks`,
          response_types_supported: ['code'],
          subject_types_supported: ['public'],
          id_token_signing_alg_values_supported: ['ES256'],
          token_endpoint_auth_methods_supported: ['client_secret_basic'],
          code_challenge_methods_supported: ['S256'],
        }
    }
  }

  async function tokens(code: string): Promise<object> {
    const nowSeconds = Math.floor(Date.now() / 1000)
    const token = new SignJWT({ nonce: nonces.get(code), roles: [role], auth_time: nowSeconds })
      .setProtectedHeader({ alg: 'ES256', kid: 'login' })
      .setIssuer(issuer)
      .setSubject(`user-${++users}`)
      .setAudience(client.id)
      .setIssuedAt(nowSeconds)
      .setExpirationTime(nowSeconds + LIFE_SECONDS)
    return {
      access_token: randomBytes(16).toString('hex'),
      token_type: 'Bearer',
      expires_in: LIFE_SECONDS,
      id_token: await token.sign(privateKey),
    }
  }

  const server = createServer(async (request, response) => {
    const result = await answer(request)
    if (result instanceof URL) return response.writeHead(302, { location: result.href }).end()
    const isPage = typeof result === 'string'
    response.setHeader('content-type', isPage ? 'text/html' : 'application/json')
    return response.end(isPage ? result : JSON.stringify(result))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { issuer, client, close }
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += chunk
  return text
}
