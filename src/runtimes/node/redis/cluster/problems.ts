/** What an operator must correct at a cluster while a gateway runs: for the log, `/-/readyz` and `doctor`. */
import { textOf } from '../../../../problems/mistake.ts'
import { findMistake } from '../socket/faults.ts'
import { redisMistake } from '../socket/resp-client.ts'
import { DisputedSlots } from './lane-markers.ts'
import type { ClusterNode, ClusterRouter } from './router.ts'
import { type ClusterChecks, UnsafeSettings } from './start-checks.ts'

/** A failover, or a slot that moves, takes less. */
export const PATIENCE_MS = 10_000
/** Calls in circles are a problem for so long after the last one. */
const CIRCLES_MS = 60_000
const ANNOUNCED =
  'set cluster-announce-ip, cluster-announce-hostname and cluster-announce-port of each node to what gateways reach'

interface ProblemOptions {
  readonly router: Pick<ClusterRouter, 'masters' | 'isReachedByOthers' | 'failure'>
  readonly checks: Pick<ClusterChecks, 'findings'>
  readonly log: (text: string) => void
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number
}

/** Creates the list. Without a finding, it is empty, also while masters are down: circuit breakers report that. */
export function createClusterProblems({ router, checks, log, now }: ProblemOptions) {
  const doubtedSince = new Map<string, number>()
  let logged = new Set<string>()
  let circledMs = Number.NEGATIVE_INFINITY

  const describe = (node: ClusterNode, cause: unknown): readonly string[] => {
    const text = textFor(node, cause)
    return text === undefined ? [] : [`REDIS_URL: ${text}`]
  }

  function textFor(node: ClusterNode, cause: unknown): string | undefined {
    const { address } = node
    const mistake = findMistake(cause)
    if (mistake !== undefined) return `the master ${address}: ${mistake}`
    if (cause instanceof DisputedSlots)
      return `the node at ${address} says that another one owns its slots, so that calls would go in circles (MOVED); ${ANNOUNCED}`
    const code = codeOf(cause)
    if (code === undefined) return undefined
    if (isOfCertificate(code))
      return `the certificate of ${address} is not accepted (${code}); announce a name that it has (cluster-announce-hostname), or set NODE_EXTRA_CA_CERTS`
    return router.isReachedByOthers(node)
      ? `the cluster announces the master ${address}, which is reached from other nodes but not from here (${code}); ${ANNOUNCED}, or open the network`
      : `the master ${address} does not answer (${code}); its settings are checked before it is used`
  }

  /** Returns what is wrong with a master that is not believed. A failover, or one that is down, is not wrong. */
  function problemOf(node: ClusterNode): readonly string[] {
    const cause = node.failure()
    if (node.isBelieved() || cause === undefined) {
      doubtedSince.delete(node.address)
      return []
    }
    const sinceMs = doubtedSince.get(node.address) ?? now()
    doubtedSince.set(node.address, sinceMs)
    // `findings` has them.
    if (cause instanceof UnsafeSettings) return []
    const code = codeOf(cause)
    const isNow = findMistake(cause) !== undefined
    const isLater = cause instanceof DisputedSlots || (code !== undefined && isWrong(node, code))
    return isNow || (isLater && now() - sinceMs >= PATIENCE_MS) ? describe(node, cause) : []
  }

  const isWrong = (node: ClusterNode, code: string): boolean =>
    isOfCertificate(code) || router.isReachedByOthers(node)

  /** Returns why no node said who owns which slots, if an operator can correct it. */
  function failureOfRouter(): readonly string[] {
    const cause = router.failure()
    const code = codeOf(cause)
    const failure =
      code !== undefined && isOfCertificate(code)
        ? `the certificate of a node is not accepted (${code}); set the name that it has, or NODE_EXTRA_CA_CERTS`
        : findMistake(cause)
    return failure === undefined ? [] : [textOf(redisMistake(failure))]
  }

  function list(): readonly string[] {
    return [
      ...failureOfRouter(),
      ...checks.findings().mistakes.map(textOf),
      ...router.masters().flatMap(problemOf),
      ...(now() - circledMs < CIRCLES_MS
        ? [
            `REDIS_URL: nodes send calls in circles (MOVED); run redis-cli --cluster check, and ${ANNOUNCED}`,
          ]
        : []),
    ]
  }

  return {
    /** Returns what is wrong now, and what to do. Contains no text of Redis. */
    list,
    /** Returns what a failed proof of a master means, or nothing if a later proof may succeed. */
    describe,
    /** Writes what is new, or is no longer wrong, to the log. */
    report() {
      const current = new Set([...list(), ...checks.findings().warnings])
      for (const text of current) if (!logged.has(text)) log(text)
      for (const text of logged) if (!current.has(text)) log(`corrected: ${text}`)
      logged = current
    },
    /** Returns texts that the caller shows, and that the log need not repeat. */
    shown(texts: readonly string[]) {
      logged = new Set([...logged, ...texts])
      return texts
    },
    /** A call was sent on too often. */
    circled() {
      circledMs = now()
    },
  }
}

/** Returns the code of an error of the system or of TLS, which has no text of a server. Undefined for others. */
function codeOf(cause: unknown): string | undefined {
  if (cause instanceof DOMException && cause.name === 'TimeoutError') return 'timeout'
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]*$/.test(code) ? code : undefined
}

const isOfCertificate = (code: string): boolean => /CERT|SIGNATURE|ISSUER/.test(code)
