/** Finds the guards of the routes that will match a request, in the router of Express. */
import type { Declaration, DeclarationOf } from '../guard/declaration.ts'
import type { NodeRequest } from './connect.ts'

/** A layer of the router. Express 4 and 5 differ only in what `match` returns. */
interface Layer {
  readonly handle?: { readonly stack?: readonly Layer[] }
  readonly method?: string
  readonly route?: {
    readonly path?: unknown
    readonly methods?: Readonly<Record<string, boolean>>
    readonly stack?: readonly Layer[]
  }
  /** What the last match has matched, if `match` returns a boolean. */
  readonly path?: string
  match?(path: string): boolean | { readonly path: string }
}

interface Application {
  /** Express 4. Its `router` throws. */
  readonly _router?: { readonly stack?: readonly Layer[] }
  readonly router?: { readonly stack?: readonly Layer[] }
}

/**
 * Returns the declarations of the first route that matches, and of the paths around it, so that one call
 * counts all limits. Empty if the router is another one: then a guard of a route counts its own limits.
 * The result grants nothing: each guard of a route decides when the request reaches it.
 */
export function declarationsAhead(
  req: NodeRequest,
  declarationOf: DeclarationOf,
): readonly Declaration[] {
  const { app, originalUrl } = req
  if (typeof app !== 'function' || originalUrl === undefined) return []
  const application = app as unknown as Application
  const found: Declaration[] = []
  try {
    const { stack = [] } = application._router ?? application.router ?? {}
    search(stack, originalUrl.split('?')[0] ?? '/', (req.method ?? 'GET').toLowerCase())
  } catch {
    // A broken escape in the path. Or the router has changed: the limits are counted later.
    return []
  }
  return found

  /** Returns whether a route was found that answers. */
  function search(layers: readonly Layer[], path: string, method: string): boolean {
    for (const layer of layers) {
      const { route, handle } = layer
      const declaration = handle && declarationOf(handle)
      const inner = handle?.stack
      if (route === undefined && declaration === undefined && inner === undefined) continue
      if (route !== undefined && !handles(route.methods, method)) continue
      const match = layer.match?.(path) ?? false
      if (match === false) continue
      if (declaration !== undefined) found.push(declaration)
      if (route !== undefined) {
        for (const { handle: each, method: only } of route.stack ?? []) {
          const own = each && declarationOf(each)
          if (own !== undefined && (only === undefined || matches(only, method))) found.push(own)
        }
        return true
      }
      const { path: matched = '' } = match === true ? layer : match
      const rest = path.slice(matched.length) || '/'
      if (inner !== undefined && search(inner, rest, method)) return true
    }
    return false
  }
}

/** A route for GET also answers HEAD. */
const matches = (one: string, method: string): boolean =>
  one === method || (one === 'get' && method === 'head')

const handles = (methods: Readonly<Record<string, boolean>> = {}, method: string): boolean =>
  methods._all === true || methods[method] === true || (method === 'head' && methods.get === true)
