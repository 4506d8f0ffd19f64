/** Finds out why a gateway has no keys of its issuers, by fetching them in the same way. */

import { BodyRefused, boundedText } from '../../src/http/bounded-text.ts'
import { importKeys } from '../../src/tokens/key-ring.ts'
import { DEFAULT_KEY_SET_TIMEOUT_MS, MAX_KEY_SET_BYTES } from '../../src/tokens/key-set-source.ts'
import type { IssuerConfig } from '../../src/validators/issuer.ts'

/**
 * Returns one line for each issuer with a key set that cannot be fetched from this machine: the
 * issuer, the URL and the reason. Empty if all can be fetched. Reports only the status of a
 * response, and no query of a URL, which may be secret.
 */
export async function keySetComplaints(
  issuers: readonly IssuerConfig[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  const complaints = await Promise.all(
    issuers.map(async ({ issuer, jwksUri, algorithms }) => {
      if (jwksUri === undefined) return []
      const why = await whyNot(jwksUri, algorithms, signal)
      const { origin, pathname } = new URL(jwksUri)
      return why === undefined ? [] : [`ISSUERS: ${issuer}: jwksUri ${origin}${pathname} ${why}`]
    }),
  )
  return complaints.flat()
}

async function whyNot(
  uri: string,
  algorithms: IssuerConfig['algorithms'],
  signal: AbortSignal,
): Promise<string | undefined> {
  const timeout = AbortSignal.timeout(DEFAULT_KEY_SET_TIMEOUT_MS)
  let text: string
  try {
    const response = await fetch(uri, {
      headers: { accept: 'application/jwk-set+json, application/json' },
      redirect: 'manual',
      signal: AbortSignal.any([timeout, signal]),
    })
    if (response.status !== 200) {
      await response.body?.cancel()
      return `responds with status ${response.status}${hintFor(response.status)}`
    }
    text = await boundedText(response.body, MAX_KEY_SET_BYTES)
  } catch (error) {
    if (timeout.aborted) return `does not respond within ${DEFAULT_KEY_SET_TIMEOUT_MS} ms`
    return error instanceof BodyRefused ? REFUSED[error.check] : unreachable(error as Error)
  }
  return await whyUseless(text, algorithms)
}

const REFUSED = {
  length: `responds with more than ${MAX_KEY_SET_BYTES} bytes`,
  encoding: 'responds with text that is not UTF-8',
} as const

const hintFor = (status: number): string =>
  status >= 300 && status < 400 ? '; redirects are not followed' : ''

/**
 * Describes a fetch error. fetch reports the code in the error's cause, or in the first of several.
 */
function unreachable({ cause }: Error): string {
  const { code, errors } = (cause ?? {}) as { code?: unknown; errors?: { code?: unknown }[] }
  const found = String(code ?? errors?.[0]?.code ?? 'connection failed')
  if (found === 'ENOTFOUND' || found === 'EAI_AGAIN') return `has an unknown host (${found})`
  return `cannot be reached (${found})`
}

async function whyUseless(
  text: string,
  algorithms: IssuerConfig['algorithms'],
): Promise<string | undefined> {
  let set: unknown
  try {
    set = JSON.parse(text)
  } catch {
    return 'responds with text that is not JSON'
  }
  const asymmetric = algorithms.filter((algorithm) => algorithm !== 'HS256')
  const imported = await importKeys(set, asymmetric)
  if (imported === undefined) return 'responds with JSON that is not a JWK Set'
  if (imported.ring.size > 0) return undefined
  return `has no key that can be used for ${asymmetric.join(', ')}`
}
