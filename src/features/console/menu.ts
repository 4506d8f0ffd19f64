/** Which pages a visitor gets: those of which its role may read something. */
import type { Context } from 'hono'
import type { Principal } from '../../access/principal.ts'
import { Denied } from '../../errors.ts'
import type { FeatureParts } from '../../gateway/feature.ts'
import { callerOf } from '../../middleware/context.ts'
import type { NavigationItem } from './layout.ts'
import type { PageDefinition } from './page.ts'

type Needs = PageDefinition['needs']

/** Creates the checks of pages, and their navigation. */
export function createMenu({
  authorizer,
  contributed,
}: Pick<FeatureParts, 'authorizer' | 'contributed'>) {
  /** Returns the permissions of the calls that the gateway has, each once. */
  function permissionsOf(needs: readonly string[]): readonly string[] {
    const { calls } = contributed()
    const found = needs.flatMap(
      (id) => calls.find(({ operation }) => operation.id === id)?.route.permission ?? [],
    )
    return [...new Set(found)]
  }

  const mayOpen = (visitor: Principal, needs: Needs): boolean =>
    needs === undefined || permissionsOf(needs).some((one) => authorizer(visitor, one))

  return {
    permissionsOf,
    /** Returns the pages that the gateway has, and of which the visitor may read something. */
    navigationOf: (visitor: Principal, pages: readonly PageDefinition[]): NavigationItem[] =>
      pages.flatMap(({ name, path, needs, isOfPlatform = false }) =>
        name === undefined ||
        (isOfPlatform && visitor.tenant !== undefined) ||
        !mayOpen(visitor, needs)
          ? []
          : [{ name, path }],
      ),
    /** Throws `Denied` if the gateway has none of the calls, or the visitor may make none. */
    requireOne(c: Context, needs: Needs): void {
      if (needs === undefined) return
      const visitor = callerOf(c, 'console')
      const [permission] = permissionsOf(needs)
      if (permission === undefined) throw new Denied({ code: 'not_found' })
      if (visitor === null || !mayOpen(visitor, needs))
        throw new Denied({ code: 'permission_missing', permission })
    },
  }
}
