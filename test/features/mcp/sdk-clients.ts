/** The official clients for TypeScript, unmodified, and what an app stores for them. */

import * as current from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/client'
import * as first from '@modelcontextprotocol/sdk/client/auth.js'
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as FirstTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { REDIRECT_URI } from './login.ts'

interface Tokens {
  access_token: string
  refresh_token?: string
}

/** The part of both versions that the tests use. */
export interface AnyTransport {
  finishAuth(...args: unknown[]): Promise<void>
}
export interface AnyClient {
  connect(transport: AnyTransport): Promise<void>
  listTools(): Promise<{ tools: readonly { name: string }[] }>
  callTool(call: object): Promise<{ content: readonly { text?: string }[] }>
  close(): Promise<void>
}
export interface Sdk {
  readonly Client: new (info: object) => AnyClient
  readonly Transport: new (url: URL, options: object) => AnyTransport
  readonly UnauthorizedError: new () => Error
}

export const SDKS: Readonly<Record<string, Sdk>> = {
  '@modelcontextprotocol/sdk 1.x': {
    Client: FirstClient as never,
    Transport: FirstTransport as never,
    UnauthorizedError: first.UnauthorizedError,
  },
  '@modelcontextprotocol/client 2.x': {
    Client: Client as never,
    Transport: current.StreamableHTTPClientTransport as never,
    UnauthorizedError: current.UnauthorizedError as never,
  },
}

/** What an app stores for the SDK. It opens no browser: it keeps the URL that the user must visit. */
export class Store {
  readonly redirectUrl: string
  clientMetadataUrl: string | undefined
  readonly clientMetadata = {
    client_name: 'test',
    redirect_uris: [''] as [string],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    // oidc-provider signs ID tokens with RS256 unless the client asks for another algorithm.
    id_token_signed_response_alg: 'ES256',
  }
  visits: URL[] = []
  information: { client_id: string; client_secret?: string } | undefined
  kept: Tokens | undefined
  verifier = ''
  constructor(redirectUrl = REDIRECT_URI) {
    this.redirectUrl = redirectUrl
    this.clientMetadata.redirect_uris = [redirectUrl]
  }
  clientInformation() {
    return this.information
  }
  saveClientInformation(information: { client_id: string }) {
    this.information = information
  }
  tokens() {
    return this.kept
  }
  saveTokens(tokens: Tokens) {
    this.kept = tokens
  }
  redirectToAuthorization(url: URL) {
    this.visits.push(url)
  }
  saveCodeVerifier(verifier: string) {
    this.verifier = verifier
  }
  codeVerifier() {
    return this.verifier
  }
  invalidateCredentials(scope: string) {
    if (scope === 'all' || scope === 'tokens') this.kept = undefined
  }
}
