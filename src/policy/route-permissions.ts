/** The permissions that a caller of a route may need. */
import type { PolicyRoute } from './route.ts'

/** Returns the permissions that a route, its JSON-RPC methods and its tools require. */
export function permissionsOfRoute({
  permission,
  inspect,
  mcp,
}: Pick<PolicyRoute, 'permission' | 'inspect' | 'mcp'>): readonly string[] {
  const { methods = {}, tools = {} } = inspect?.jsonRpc ?? {}
  const calls = [...Object.values(methods), ...Object.values(tools)].flatMap((call) =>
    call === true || call.permission === undefined ? [] : [call.permission],
  )
  const ofServer = mcp?.permissions ?? []
  return [...(permission === undefined ? [] : [permission]), ...calls, ...ofServer]
}
