/** The subpaths of the package. `exports` of package.json is their only list. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../root.ts'

export interface Subpath {
  /** The specifier that a consumer imports, such as `portcullis/hono`. */
  readonly specifier: string
  /** The source file, relative to the root: `src/hono/index.ts` for `dist/hono/index.js`. */
  readonly source: string
  /** The built file without its extension, relative to `dist`. */
  readonly built: string
}

/** Returns all subpaths that are modules, in the order of package.json. */
export function subpaths(): readonly Subpath[] {
  const { name, exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly name: string
    readonly exports: Readonly<Record<string, string | { readonly default: string }>>
  }
  return Object.entries(exports).flatMap(([subpath, target]) => {
    const file = typeof target === 'string' ? target : target.default
    const [, built] = /^\.\/dist\/(.+)\.js$/.exec(file) ?? []
    if (built === undefined) return []
    return [{ specifier: name + subpath.slice(1), source: `src/${built}.ts`, built }]
  })
}
