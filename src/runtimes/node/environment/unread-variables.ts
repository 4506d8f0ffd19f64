/** Variables that look like those of the gateway, and have no effect. */
import { didYouMean } from '../../../suggestions/did-you-mean.ts'

/** Shorter names, such as `POST`, are near to too many others. */
const MIN_CHARS = 6

/** Kubernetes sets `ORIGIN_PORT` to such a value for a Service `origin`. */
const OF_SERVICE = /^(?:tcp|udp|sctp):\/\//

/** One of them is required. */
const OF_REDIS = /^(?:REDIS_URL|UPSTASH_REDIS_REST_(?:URL|TOKEN))$/

/**
 * Returns a sentence for each variable that is not `known`, and whose name is near to one that is known and
 * not set. A process has many variables of others, so only names of as many words with the same
 * first letter count. They are no mistake: another program may read them.
 */
export function unreadVariables(
  variables: Readonly<Record<string, unknown>>,
  known: readonly string[],
): string[] {
  const unset = known.filter((name) => variables[name] === undefined && !OF_REDIS.test(name))
  return Object.keys(variables)
    .filter((name) => name.length >= MIN_CHARS && !known.includes(name))
    .filter((name) => !OF_SERVICE.test(String(variables[name])))
    .flatMap((name) => {
      const nearest = didYouMean(name, unset.filter(isLike(name)))
      return nearest === undefined ? [] : [`${name}: is not read; ${nearest}`]
    })
}

const isLike = (name: string) => (other: string) =>
  wordsIn(name) === wordsIn(other) && name[0]?.toUpperCase() === other[0]

const wordsIn = (name: string): number => name.split('_').length
