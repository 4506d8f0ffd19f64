/** The opponent of `bench/node/by-hand.ts` as a Worker: the same, with one call over REST. */
import { createLocalJWKSet, type JWTPayload, jwtVerify } from 'jose'
import { LRUCache } from 'lru-cache'
import { ADMIT, WINDOW_MS } from '../node/window-script.ts'
import { pathStart } from './routing.ts'

interface Env {
  readonly UPSTASH_REDIS_REST_URL: string
  readonly UPSTASH_REDIS_REST_TOKEN: string
  readonly ORIGIN_URL: string
  readonly JWKS: string
  readonly ISSUER: string
  readonly LIMIT: string
}

type Decide = (request: Request, context: ExecutionContext) => Promise<Response>
let decide: Decide | undefined

export default {
  fetch(request, env, context) {
    decide ??= createDecide(env)
    return decide(request, context)
  },
} satisfies ExportedHandler<Env>

function createDecide(env: Env): Decide {
  const keys = createLocalJWKSet(JSON.parse(env.JWKS))
  const { ISSUER: issuer } = env
  const options = { issuer, audience: issuer, typ: 'at+jwt', algorithms: ['ES256'] }
  const verified = new LRUCache<string, JWTPayload>({ max: 10_000 })

  async function claimsOf(token: string): Promise<JWTPayload | undefined> {
    const known = verified.get(token)
    if (known !== undefined) return (known.exp ?? 0) * 1000 > Date.now() ? known : undefined
    try {
      const { payload } = await jwtVerify(token, keys, options)
      verified.set(token, payload)
      return payload
    } catch {
      return undefined
    }
  }

  // Workers may not await in the global scope.
  let digest: string | undefined
  async function digestOf(text: string): Promise<string> {
    const bytes = await crypto.subtle.digest('SHA-1', new TextEncoder().encode(text))
    return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('')
  }

  async function call(command: readonly unknown[]): Promise<unknown> {
    const response = await fetch(env.UPSTASH_REDIS_REST_URL, {
      method: 'POST',
      headers: { authorization: `Bearer ${env.UPSTASH_REDIS_REST_TOKEN}` },
      body: JSON.stringify(command),
    })
    const { result, error } = await response.json<{ result?: unknown; error?: string }>()
    return error?.startsWith('NOSCRIPT') ? undefined : result
  }

  /** Returns 1, or the negative status of a refusal. */
  async function admit({ jti, sub }: JWTPayload, nowMs: number): Promise<unknown> {
    const window = Math.floor(nowMs / WINDOW_MS)
    const names = [`revoked:${jti}`, `window:${sub}:${window}`, `window:${sub}:${window - 1}`]
    const rest = [3, ...names, env.LIMIT, 1 - (nowMs % WINDOW_MS) / WINDOW_MS]
    digest ??= await digestOf(ADMIT)
    return (await call(['EVALSHA', digest, ...rest])) ?? call(['EVAL', ADMIT, ...rest])
  }

  return async (request, context) => {
    const timeMs = Date.now()
    const headers = new Headers(request.headers)
    const token = headers.get('authorization')?.replace(/^Bearer /i, '') ?? ''
    const claims = await claimsOf(token)
    if (claims === undefined) return refusal(401)
    const verdict = await admit(claims, timeMs).catch(() => -503)
    if (verdict !== 1) return refusal(typeof verdict === 'number' ? -verdict : 503)
    const path = request.url.slice(pathStart(request.url))
    if (!path.startsWith('/orders')) return refusal(404)
    const { sub = '', roles } = claims
    if (!Array.isArray(roles) || !roles.includes('writer')) return refusal(403)
    headers.delete('authorization')
    headers.set('x-auth-subject', sub)
    headers.set('x-auth-roles', roles.join())
    const { method, body } = request
    const response = await fetch(env.ORIGIN_URL + path, {
      method,
      headers,
      body,
      redirect: 'manual',
    })
    const event = { timeMs, subject: sub, method, path, decision: 'allowed' }
    context.waitUntil(Promise.resolve(JSON.stringify(event)))
    return response
  }
}

const refusal = (status: number): Response =>
  Response.json({ status }, { status, headers: { 'content-type': 'application/problem+json' } })
