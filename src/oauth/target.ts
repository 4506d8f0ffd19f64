/** Who a token is for (RFC 8707 section 2, RFC 8693 section 2.1). */

import { oauthRefused } from '../tokens/oauth-refusal.ts'
import type { OAuthForm } from './form.ts'

/**
 * The audiences of a token: what `resource` and `audience` name, of `allowed` only; `otherwise` (the
 * first of `allowed`) where they name nothing. Names are compared letter by letter. Throws `Denied`
 * (`invalid_target`) for any other, and for a resource that is no absolute URI without a fragment.
 */
export function grantedAudiences(
  form: OAuthForm,
  allowed: readonly string[],
  otherwise: readonly string[] = allowed.slice(0, 1),
): readonly string[] {
  const resources = form.all('resource')
  if (!resources.every(isResource)) throw oauthRefused('invalid_target', 'resource_malformed')
  const named = [...new Set([...resources, ...form.all('audience')])]
  if (!named.every((name) => allowed.includes(name)))
    throw oauthRefused('invalid_target', 'target_exceeded')
  return named.length > 0 ? named : otherwise
}

/** RFC 8707 section 2: absolute (RFC 3986 section 4.3), and no fragment. */
function isResource(text: string): boolean {
  return URL.canParse(text) && !text.includes('#')
}
