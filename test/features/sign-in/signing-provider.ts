/**
 * A small OpenID Provider whose answers a test chooses: every token is really signed, and every login
 * ends at once. For what the package `oidc-provider` does not send.
 */
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { exportJWK, generateKeyPair, importJWK, SignJWT } from 'jose'
import { startHttpServer } from '../../harness/http-server.ts'
import { createKey } from '../../harness/issuer.ts'

type Members = Readonly<Record<string, unknown>>

/** What the provider sends. Members replace those of a correct answer; undefined removes one. */
export interface ProviderAnswer {
  idToken: Members
  header: Members
  token: Members
  /** Of the authorization response, such as `{ error: 'invalid_scope' }`. */
  authorization: Members
  metadata: Members
  /** Of the endpoint for pushed requests. */
  push?: (form: URLSearchParams, response: ServerResponse) => unknown
  /** Of the UserInfo endpoint. Undefined: the metadata names none. */
  userInfo?: (request: IncomingMessage, response: ServerResponse) => unknown
  /** The keys of the key set. */
  keys: readonly object[]
  /** How the token endpoint sends its response. Default: 200, with the members of `token`. */
  response: {
    readonly status: number
    readonly headers?: Readonly<Record<string, string>>
    readonly body?: string
  }
}

export type SigningProvider = Awaited<ReturnType<typeof startSigningProvider>>

export async function startSigningProvider() {
  const client = { id: 'gateway', secret: randomBytes(32).toString('base64url') }
  const key = await createKey('idp')
  const { publicKey } = await generateKeyPair('RS256', { extractable: true })
  const other = await exportJWK(publicKey)
  const rsa = await generateKeyPair('RS256', { extractable: true })
  const rsaJwk = { ...(await exportJWK(rsa.publicKey)), kid: 'rsa', alg: 'RS256', use: 'sig' }
  const answer: ProviderAnswer = {
    idToken: {},
    header: {},
    token: {},
    authorization: {},
    metadata: {},
    response: { status: 200 },
    // As some providers publish them: the same key twice, and a key of another type with its `kid`.
    keys: [key.publicJwk, { ...other, kid: 'idp' }, key.publicJwk, rsaJwk],
  }
  const initial = { ...answer }
  /** Queries of the authorization requests so far. */
  const requests: URLSearchParams[] = []
  const redirectUris: string[] = []
  /** The last pushed request. */
  let pushed = new URLSearchParams()
  const nonces = new Map<string, string>()

  const nowSeconds = () => Math.floor(Date.now() / 1000)
  /** Signs with ES256, or with RS256 if the header says so. */
  const sign = async (claims: Members, header: Members = {}) => {
    const isRsa = header.alg === 'RS256'
    return new SignJWT(JSON.parse(JSON.stringify(claims)))
      .setProtectedHeader({ alg: 'ES256', kid: isRsa ? 'rsa' : 'idp', ...header })
      .sign(isRsa ? rsa.privateKey : await importJWK(key.privateJwk, 'ES256'))
  }

  function authorize(url: URL, response: ServerResponse) {
    requests.push(url.searchParams)
    const code = randomBytes(16).toString('hex')
    const query = url.searchParams.has('request_uri') ? pushed : url.searchParams
    nonces.set(code, query.get('nonce') ?? '')
    const back = new URL(query.get('redirect_uri') ?? '')
    const isError = 'error' in answer.authorization
    const members = {
      state: query.get('state'),
      ...(isError ? {} : { code }),
      ...answer.authorization,
    }
    for (const [name, value] of Object.entries(members))
      if (typeof value === 'string') back.searchParams.set(name, value)
    response.writeHead(303, { location: back.href }).end()
  }

  async function push(request: IncomingMessage, response: ServerResponse) {
    let body = ''
    for await (const chunk of request) body += chunk
    pushed = new URLSearchParams(body)
    await answer.push?.(pushed, response)
  }

  async function exchange(request: IncomingMessage, response: ServerResponse) {
    let body = ''
    for await (const chunk of request) body += chunk
    const form = new URLSearchParams(body)
    redirectUris.push(form.get('redirect_uri') ?? '')
    const now = nowSeconds()
    const claims = {
      iss: server.url,
      aud: client.id,
      sub: 'alice',
      iat: now,
      exp: now + 300,
      auth_time: now,
      roles: ['reader'],
      nonce: nonces.get(form.get('code') ?? ''),
      ...answer.idToken,
    }
    const members = {
      access_token: 'x',
      token_type: 'Bearer',
      id_token: await sign(claims, answer.header),
      ...answer.token,
    }
    const { status, headers, body: text = JSON.stringify(members) } = answer.response
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(text)
  }

  const server = await startHttpServer((request, response) => {
    const url = new URL(request.url ?? '/', server.url)
    if (url.pathname === '/auth') return authorize(url, response)
    if (url.pathname === '/token') return void exchange(request, response)
    response.setHeader('content-type', 'application/json')
    if (url.pathname === '/par') return void push(request, response)
    if (url.pathname === '/userinfo') return answer.userInfo?.(request, response)
    if (url.pathname === '/jwks') return response.end(JSON.stringify({ keys: answer.keys }))
    const metadata = {
      issuer: server.url,
      authorization_endpoint: `${server.url}/auth`,
      token_endpoint: `${server.url}/token`,
      jwks_uri: `${server.url}/jwks`,
      end_session_endpoint: `${server.url}/end`,
      pushed_authorization_request_endpoint: `${server.url}/par`,
      id_token_signing_alg_values_supported: ['ES256'],
      ...(answer.userInfo && { userinfo_endpoint: `${server.url}/userinfo` }),
      ...answer.metadata,
    }
    return response.end(JSON.stringify(metadata))
  })
  return {
    issuer: server.url,
    client,
    key,
    answer,
    requests,
    /** `redirect_uri` of each exchange of a code. */
    redirectUris,
    sign,
    /** Sends correct answers again. */
    reset() {
      delete answer.userInfo
      delete answer.push
      Object.assign(answer, initial)
    },
    close: () => server.close(),
  }
}
