/** Runtimes that the server does not support. */

/** Both also state a version of Node in `process.versions`. */
const OTHERS = { bun: 'Bun', deno: 'Deno' } as const

/**
 * Returns what to do on Bun and Deno, as a sentence. Undefined on Node. The server uses sockets of Node and the
 * connections of undici in ways that the others do not have: on Bun it would listen, and fail every request
 * to an origin.
 */
export function mistakeOfRuntime(versions: NodeJS.ProcessVersions): string | undefined {
  for (const [name, title] of Object.entries(OTHERS)) {
    const version = versions[name]
    if (version !== undefined)
      return (
        `the server needs Node, and this is ${title} ${version}; start it with Node, or guard an app on this ` +
        'runtime with portcullis/hono'
      )
  }
  return undefined
}
