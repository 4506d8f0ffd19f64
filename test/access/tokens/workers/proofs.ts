/** A Worker that verifies the DPoP proof of each request, and reports the outcome. */

import { createDpopVerifier, type DpopVerifier } from '../../../../src/access/tokens/dpop.ts'
import { Denied } from '../../../../src/errors.ts'

interface Env {
  readonly NONCE_SECRET: string
  readonly NOW_MS: string
}

let verifier: DpopVerifier | undefined

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { origin, pathname } = new URL(request.url)
    verifier ??= createDpopVerifier({
      publicUrl: origin,
      nonceSecret: env.NONCE_SECRET,
      nonceRequired: true,
      now: () => Number(env.NOW_MS),
    })
    if (pathname === '/nonce') return new Response(await verifier.nonce())
    try {
      const header = request.headers.get('DPoP') ?? undefined
      const { method, url } = request
      return Response.json(await verifier.verify({ method, url, header, token: 'a.b.c' }))
    } catch (error) {
      if (error instanceof Denied) return Response.json(error.denial, { status: 401 })
      return new Response(String(error), { status: 500 })
    }
  },
}
