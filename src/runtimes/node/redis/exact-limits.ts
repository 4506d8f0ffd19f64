/** What limits on a Redis Cluster need. */
import type { NamedLimit } from '../../../policy/definition.ts'
import { type Mistake, mistakeAt } from '../../../problems/mistake.ts'

/**
 * Returns a mistake for each limit that cannot count over lanes. If one lane refuses a request, others give back what
 * they have counted for it. Only exact limits can do that.
 */
export function inexactLimits(
  limits: ReadonlyMap<string, { readonly engine?: NamedLimit['engine'] | undefined }>,
): Mistake[] {
  const text =
    'upstash() does not count over the lanes of a Redis Cluster; remove `engine`, so that the limit is exact'
  return [...limits]
    .filter(([, { engine }]) => typeof engine === 'object')
    .map(([name]) => mistakeAt('unsupported', ['limits', name, 'engine'], text))
}
