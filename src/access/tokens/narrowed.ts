/** Tokens of the gateway that are for some of its paths only (RFC 8707). */

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
