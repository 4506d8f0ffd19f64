/**
 * Tokens of the gateway that are for some of its paths only (RFC 8707). Such a token states these paths as
 * its audience. Inside, the gateway precedes them, because it receives the requests.
 */

/** Reports whether a resource is a path of the gateway: `https://gateway.example.com/mcp`. */
export const isResourceOf = (name: string, issuer: string): boolean => name.startsWith(`${issuer}/`)

/** Segments without an escape, which has another spelling. No segment is empty. */
const PATH = /^(?:\/[\w.~!$&'()*+,=:@-]+)+$/
const DOT_SEGMENT = /\/\.\.?(?:\/|$)/

/** Returns the path of a resource of the gateway. Undefined for any other name or spelling. */
export function pathOf(name: string, issuer: string): string | undefined {
  if (!isResourceOf(name, issuer)) return undefined
  const path = name.slice(issuer.length)
  return PATH.test(path) && !DOT_SEGMENT.test(path) ? path : undefined
}

const namesPath = (names: readonly string[], issuer: string): boolean =>
  names.some((name) => pathOf(name, issuer) !== undefined)

/** Returns audiences with the gateway before them, if they name a path of it. */
export const withGateway = (names: readonly string[], issuer: string): readonly string[] =>
  namesPath(names, issuer) ? [...new Set([issuer, ...names])] : names

/** Returns what a token states: a server that is not for these paths must not accept it. */
export const statedAudiences = (names: readonly string[], issuer: string): readonly string[] =>
  namesPath(names, issuer) ? names.filter((name) => name !== issuer) : names

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
