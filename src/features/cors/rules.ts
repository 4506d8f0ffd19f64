/** Decides which pages may read responses, and with which headers (Fetch, section 3.3). */
import type { CorsDefinition } from '../../policy/cors.ts'

/** Headers by their name, as they are written. */
type Headers = readonly (readonly [name: string, value: string])[]

export type CorsRules = ReturnType<typeof compileCorsRules>

const EXPOSED = [
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'X-Request-Id',
  'DPoP-Nonce',
  'WWW-Authenticate',
]

const ALLOWED = ['Authorization', 'Content-Type', 'DPoP']

/** Chromium keeps a response no longer. */
const DEFAULT_MAX_AGE_SECONDS = 7_200

/**
 * Compiles the rules, once for each isolate. `tokenHeaders`: names of the headers, besides
 * `Authorization`, that contain tokens.
 */
export function compileCorsRules(definition: CorsDefinition, tokenHeaders: readonly string[] = []) {
  const { origins, credentials = false, privateNetwork = false } = definition
  const { allowHeaders = [], exposeHeaders = [] } = definition
  const { maxAgeSeconds = DEFAULT_MAX_AGE_SECONDS } = definition
  const isAnyone = origins === '*'
  const patterns = isAnyone ? [] : origins
  const exact = new Set(patterns.filter((pattern) => !pattern.includes('*')))
  const wildcards = patterns.filter((pattern) => pattern.includes('*')).map(compileWildcard)
  // `null` is the origin of sandboxed pages of anyone, so no rule but '*' allows it.
  const allows = (origin: string | undefined): origin is string =>
    origin !== undefined &&
    (isAnyone || exact.has(origin) || wildcards.some((matches) => matches(origin)))

  const common: Headers = [
    ...(credentials ? [['Access-Control-Allow-Credentials', 'true'] as const] : []),
    ['Access-Control-Expose-Headers', listOf([...EXPOSED, ...exposeHeaders])],
  ]
  const ofAnyone: Headers = [['Access-Control-Allow-Origin', '*'], ...common]
  const allowed = listOf([...ALLOWED, ...tokenHeaders, ...allowHeaders])
  return {
    /** Whether pages of this origin may read responses. `origin`: the value of `Origin`. */
    allows,
    /** Headers of a response; none without an allowed origin. */
    ofResponse(origin: string | undefined) {
      if (isAnyone) return ofAnyone
      return allows(origin) ? [['Access-Control-Allow-Origin', origin], ...common] : []
    },
    /** Whether responses to different pages have different headers. */
    varyByOrigin: !isAnyone,
    /** Additional headers of the response to a preflight request that is allowed. */
    ofPreflight: (method: string, isPrivateNetwork: boolean) => [
      ['Access-Control-Allow-Methods', method],
      ['Access-Control-Allow-Headers', allowed],
      ['Access-Control-Max-Age', String(maxAgeSeconds)],
      ...(isPrivateNetwork && privateNetwork
        ? [['Access-Control-Allow-Private-Network', 'true'] as const]
        : []),
    ],
  }
}

/** Joins names, each once, whatever its case is. */
function listOf(names: readonly string[]): string {
  return [...new Map(names.map((name) => [name.toLowerCase(), name])).values()].join(', ')
}

/** Returns a check for origins with one label of a host name in place of `*`. */
function compileWildcard(pattern: string): (origin: string) => boolean {
  const [before = '', after = ''] = pattern.split('*')
  return (origin) =>
    origin.startsWith(before) &&
    origin.endsWith(after) &&
    LABEL.test(origin.slice(before.length, -after.length))
}

const LABEL = /^[a-z0-9-]+$/
