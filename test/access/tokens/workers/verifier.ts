/** A Worker that verifies the bearer token of each request, and reports the outcome. */

import { base64url } from 'jose'
import type { TokenVerifier } from '../../../../src/access/principal.ts'
import { bearerToken } from '../../../../src/access/tokens/credential.ts'
import { edgeKeySetCache } from '../../../../src/access/tokens/key-set-source.ts'
import { createTokenVerifier } from '../../../../src/access/tokens/verifier.ts'
import { Denied, Unavailable } from '../../../../src/errors.ts'
import { issuers } from '../../../../src/validators/issuer.ts'

/** The time that the tokens of the tests are issued for. A request can be `laterMs` after it. */
const BEGINNING_MS = 1_800_000_000_000
let startedMs = 0
let laterMs = 0
const now = () => BEGINNING_MS + Date.now() - startedMs + laterMs

/** A verifier for each provider, created at its first use. */
const verifiers = new Map<string, TokenVerifier>()

/** Without `jwksUri`, the key set is found in the metadata of `issuer`. */
function verifierFor(issuer: string, jwksUri: string | undefined): TokenVerifier {
  const name = jwksUri ?? issuer
  const known = verifiers.get(name)
  if (known !== undefined) return known
  const trusted = issuers.parse([{ issuer, audience: 'https://api.test', jwksUri }])
  const verifier = createTokenVerifier({ issuers: trusted, now })
  verifiers.set(name, verifier)
  return verifier
}

async function poison(jwksUri: string, text: string): Promise<Response> {
  const cache = edgeKeySetCache()
  await cache?.write(jwksUri, { text, fetchedAtMs: now() }, 3_600)
  return new Response((await cache?.read(jwksUri))?.text === text ? 'poisoned' : 'lost')
}

/** The platform's own verification of an EdDSA token and a key, without our checks. */
async function verifyBare(request: Request): Promise<Response> {
  const { x, token } = (await request.json()) as { x: string; token: string }
  const jwk = { kty: 'OKP', crv: 'Ed25519', x }
  const key = await crypto.subtle.importKey('jwk', jwk, 'Ed25519', false, ['verify'])
  const end = token.lastIndexOf('.')
  const signature = base64url.decode(token.slice(end + 1))
  const content = new TextEncoder().encode(token.slice(0, end))
  return new Response(`${await crypto.subtle.verify('Ed25519', key, signature, content)}`)
}

export default {
  async fetch(request: Request, _env: unknown, context: ExecutionContext): Promise<Response> {
    startedMs ||= Date.now()
    laterMs = Number(request.headers.get('x-seconds-later') ?? 0) * 1000
    const { pathname } = new URL(request.url)
    const jwksUri = request.headers.get('x-jwks-uri') ?? undefined
    const issuer = request.headers.get('x-issuer') ?? 'https://idp.test/'
    if (pathname === '/bare') return verifyBare(request)
    if (pathname === '/poison') return poison(jwksUri ?? '', await request.text())
    // Without waitUntil, all work of a request ends when its client leaves.
    const waitUntil =
      pathname === '/mortal' ? undefined : (promise: Promise<unknown>) => context.waitUntil(promise)
    try {
      const token = bearerToken(request.headers.get('authorization') ?? undefined)
      return new Response((await verifierFor(issuer, jwksUri).verify(token, waitUntil)).subject)
    } catch (error) {
      if (error instanceof Denied)
        return new Response(JSON.stringify(error.denial), { status: 401 })
      if (error instanceof Unavailable) return new Response(error.message, { status: 503 })
      return new Response(String(error), { status: 500 })
    }
  },
}
