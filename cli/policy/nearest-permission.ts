/** Suggestions for misspelled permissions. */
import { didYouMean } from '../../src/suggestions/did-you-mean.ts'

/** Returns a suggestion that differs by its spelling only: each part of it is similar to that of the permission. */
export function nearestPermission(
  permission: string,
  known: readonly string[],
): string | undefined {
  const parts = permission.split(':')
  const similar = known.filter((name) => {
    const others = name.split(':')
    return (
      others.length === parts.length &&
      parts.every((part, at) => didYouMean(part, others.slice(at, at + 1)) !== undefined)
    )
  })
  return didYouMean(permission, similar)
}
