/** Computes the audiences of a token (RFC 8707 section 2, RFC 8693 section 2.1). */
import { oauthRefused } from '../tokens/rejection.ts'
import type { OAuthForm } from './form.ts'

interface Targets {
  /** The gateway's public URL. */
  readonly issuer: string
  readonly allowed: readonly string[]
  /** Audiences of a token if the request names none. Default: the first of `allowed`. */
  readonly otherwise?: readonly string[]
}

/**
 * Returns the audiences of a token: the values of `resource` and `audience`, which must be in
 * `allowed`. Compares them exactly, except the gateway's own URL as a resource. Throws `Denied`
 * (`invalid_target`) for any other value, and for a resource that is not an absolute URI or has a
 * fragment.
 */
export function grantedAudiences(
  form: OAuthForm,
  { issuer, allowed, otherwise = allowed.slice(0, 1) }: Targets,
): readonly string[] {
  const given = form.all('resource')
  if (!given.every(isResource)) throw oauthRefused('invalid_target', 'resource_malformed')
  const own = rootOf(issuer)
  const isOwn = (name: string) =>
    own !== undefined && !allowed.includes(name) && rootOf(name) === own
  const resources = given.map((name) => (isOwn(name) ? issuer : name))
  const named = [...new Set([...resources, ...form.all('audience')])]
  if (!named.every((name) => allowed.includes(name)))
    throw oauthRefused('invalid_target', 'target_exceeded')
  if (named.length === 0) return otherwise
  // The gateway itself receives requests for a resource below it. See `narrowedTo`.
  const isBelow = named.some((name) => isResourceOf(name, issuer)) && allowed.includes(issuer)
  return isBelow ? [...new Set([issuer, ...named])] : named
}

/** Reports whether a resource is a path of the gateway: `https://gateway.example.com/mcp`. */
export const isResourceOf = (name: string, issuer: string): boolean => name.startsWith(`${issuer}/`)

/**
 * Returns the paths of the gateway that a token is for. Undefined: its audiences name no path, so it
 * is for all of them.
 */
export function narrowedTo(
  audiences: readonly string[] | undefined,
  issuer: string,
): readonly string[] | undefined {
  const resources = audiences?.filter((name) => isResourceOf(name, issuer)) ?? []
  return resources.length === 0 ? undefined : resources.map((name) => name.slice(issuer.length))
}

const ROOT = /^(https?):\/\/([a-z\d._-]+|\[[\da-f:.]+\])(?::(\d+))?\/?$/i
const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: '80', https: '443' }

/**
 * Returns the normal form of a URL without a path, for comparison: the case of scheme and host, the
 * default port and an empty path make no difference (RFC 3986 sections 6.2.2.1 and 6.2.3). Clients
 * may write the gateway's URL as `new URL()` does, with a slash. Returns undefined for any other
 * text, also for texts that `new URL()` would repair.
 */
function rootOf(text: string): string | undefined {
  const [, scheme = '', host, port] = ROOT.exec(text) ?? []
  if (host === undefined) return undefined
  const isDefault = port === undefined || port === DEFAULT_PORTS[scheme.toLowerCase()]
  return `${scheme}://${host}`.toLowerCase() + (isDefault ? '' : `:${port}`)
}

/** RFC 8707 section 2: absolute (RFC 3986 section 4.3), and no fragment. */
export function isResource(text: string): boolean {
  return URL.canParse(text) && !text.includes('#')
}
