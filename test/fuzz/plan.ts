/** Random cases: one request each, with what its client and its origin do, and at which byte. */
import { seededRandom } from '../../dev/fault-proxy/random.ts'

export const KINDS = ['get', 'upload', 'chunked', 'stream', 'socket'] as const
/** `upload` has a Content-Length, `stream` answers with server-sent events, `socket` is an upgrade. */
export type Kind = (typeof KINDS)[number]

/** `deaf`: sends all, and does not read the response. */
export const CLIENT_ACTS = ['abort', 'reset', 'halfClose', 'stall', 'deaf'] as const
/** `early`: answers 413 and ends the connection before it has read the request. */
export const ORIGIN_ACTS = ['abort', 'reset', 'halfClose', 'stall', 'early'] as const

export interface Fault<Act> {
  readonly act: Act
  /** Whether it happens in the request or in the response. */
  readonly side: 'request' | 'response'
  /** Position in that message: 0 is its first byte, 1 its end. */
  readonly at: number
  /** How long `stall` and `deaf` last. The connection is then destroyed. */
  readonly ms: number
}

export interface Case {
  readonly id: number
  readonly kind: Kind
  /** One of several equal routes, each with its own circuit breaker. */
  readonly route: number
  readonly uploadBytes: number
  readonly answerBytes: number
  readonly isAnswerChunked: boolean
  /** Sends the frames of a WebSocket before the gateway has accepted it (RFC 6455 section 4.1 forbids it). */
  readonly isEager: boolean
  /** Undefined: behaves. */
  readonly client: Fault<(typeof CLIENT_ACTS)[number]> | undefined
  readonly origin: Fault<(typeof ORIGIN_ACTS)[number]> | undefined
}

export const ROUTES = 8
/** Timeout of the origin in the policy of the fuzz. */
export const ORIGIN_TIMEOUT_MS = 6_000
/** Shorter and longer than that timeout, by a margin. */
const STALLS_MS = [300, 1_000, 10_000]
const LARGE_BYTES = 2_000_000
const SMALL_BYTES = 40_000
const LARGE_SHARE = 0.2
/** Many faults are at the first byte: while the other end still sends as fast as it can. */
const FIRST_SHARE = 0.3
const EAGER_SHARE = 0.3
const CLIENT_FAULTS = 0.35
const ORIGIN_FAULTS = 0.4

/**
 * Returns a function that creates the next case. Equal seeds give equal cases. `largeBytes` is the size of
 * the largest bodies. Default 2,000,000.
 */
export function createPlan(seed: number, largeBytes = LARGE_BYTES): () => Case {
  const random = seededRandom(seed)
  const oneOf = <Item>(items: readonly [Item, ...Item[]]): Item =>
    items[Math.floor(random() * items.length)] ?? items[0]
  const size = () => Math.floor(random() * (random() < LARGE_SHARE ? largeBytes : SMALL_BYTES)) + 1
  const faultOf = <Act>(acts: readonly [Act, ...Act[]], share: number): Fault<Act> | undefined => {
    const fault: Fault<Act> = {
      act: oneOf(acts),
      side: oneOf(['request', 'response']),
      at: random() < FIRST_SHARE ? 0 : random(),
      ms: oneOf([50, ...STALLS_MS]),
    }
    return random() < share ? fault : undefined
  }
  let id = 0
  return function next() {
    id += 1
    return {
      id,
      kind: oneOf(KINDS),
      route: Math.floor(random() * ROUTES),
      uploadBytes: size(),
      answerBytes: size(),
      isAnswerChunked: random() < 0.5,
      isEager: random() < EAGER_SHARE,
      client: faultOf(CLIENT_ACTS, CLIENT_FAULTS),
      origin: faultOf(ORIGIN_ACTS, ORIGIN_FAULTS),
    }
  }
}
