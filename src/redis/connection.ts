/** The connection to Redis, as the rest of the gateway uses it. */
import type { RedisKeys } from './keys.ts'

/** Such as `['GET', 'key']`. */
export type RedisCommand = readonly (string | number)[]

/** The reply to one command: exactly one of the two members is set. */
export interface RedisReply {
  readonly result?: unknown
  /** The error text of Redis. It may quote keys: never show or log it. */
  readonly error?: string
}

/**
 * The lanes of a Redis cluster. A lane is a prefix with a hash tag, so that all of its keys are in
 * one slot, and one script may use them together; see `lanes.ts`.
 */
export interface Lanes {
  /** Every lane. The control lane is not among them. */
  readonly all: readonly RedisConnection[]
  /** Returns the lane of a subject, an address or another value. */
  of(value: string): RedisConnection
  /** Whether new credentials go to the control lane, where gateways of earlier versions find them. */
  readonly credentialsInControl: boolean
  /**
   * Returns the first secret of a new credential whose SHA-256 is in the lane of its subject. `create` gets the
   * number of the attempt, from 0 on.
   */
  draw(subject: string, create: (attempt: number) => string): string
  /**
   * Finds a credential by the hash of its secret: calls `read` in the lane of the hash, and if that returns
   * undefined, where credentials are whose secrets were not drawn for their lane. See docs/decisions/0125.
   */
  search<Found>(
    control: RedisConnection,
    hash: string,
    read: (lane: RedisConnection) => Promise<Found | undefined>,
  ): Promise<Located<Found> | undefined>
  /** Stores that `lane` has a credential, in the lane of the hash of its secret, for so many seconds. */
  point(hash: string, lane: RedisConnection, lifeSeconds: number | undefined): Promise<void>
}

/** What was found, and in which lane. */
export interface Located<Found> {
  readonly lane: RedisConnection
  readonly found: Found
}

/** The socket of a call, for a later call that no other server may run. */
export interface UsedSocket {
  /** Undefined: no call was sent yet. Only the connection interprets it. */
  socket?: object | undefined
}

/** What a write changes: a revocation, a cutoff, a ban or a plan. */
export interface Fact {
  /** The key, in the control lane. */
  readonly key: string
  /** The only subject that it concerns. Absent: it concerns callers of every lane. */
  readonly subject?: string | undefined
}

/** Lets all lanes have what is written in the control lane; see docs/decisions/0119. */
export interface Broadcast {
  /**
   * Calls `write`, which changes facts in the control lane, and copies the facts to the lanes. Returns
   * after all lanes have them, else throws `Unavailable`: {@link complete} of any gateway then copies
   * them to the others. `now` returns milliseconds since the epoch.
   */
  write<Result>(
    facts: readonly Fact[],
    now: () => number,
    write: (control: RedisConnection) => Promise<Result>,
  ): Promise<Result>
  /**
   * Copies facts that the control lane has already, as {@link write} does. With `endsAtSeconds`, once for each fact
   * with this end: a later call does nothing, because every refused request of a banned caller makes one.
   */
  copy(facts: readonly Fact[], now: () => number, endsAtSeconds?: number): Promise<void>
  /**
   * Copies facts that the control lane has to the lanes of their subjects, for faster reads. Without a mark, and
   * without replicas: if it fails, nothing is wrong, and an older copy never replaces a later one.
   */
  cache(facts: readonly Fact[], now: () => number): Promise<void>
  /** Returns the name of a fact, for a script of the control lane that marks it as pending when it writes it. */
  nameOf(fact: Fact): string
  /**
   * Completes facts whose writers have ended before all lanes had them, and returns how many. Throws
   * `Unavailable` if a lane cannot be reached; the next call repeats it.
   */
  complete(now: () => number): Promise<number>
}

export interface SendOptions {
  /** The call must not be sent a second time. */
  readonly once?: boolean
  /**
   * So many replicas must have received what the commands wrote, else the call throws
   * `Unavailable`. The commands have run then, and a replica may have received them. Waits for at
   * most the deadline of the call, on a socket that no request uses. Over RESP only. Default 0.
   */
  readonly acknowledgedBy?: number
  /**
   * Records the socket of the call. A call with a recorded socket is sent over this socket, once, or
   * throws `Unavailable`: after a failover another server has other data. Over RESP only.
   */
  readonly over?: UsedSocket
}

/**
 * Port: the connection to one server, or to the control lane of a cluster. Code that does not use
 * `lanes` keeps all of its keys in the control lane, so it is correct on a cluster too.
 */
export interface RedisConnection {
  /** Connections with the same value share what they learn about the server. Default: nothing. */
  readonly server?: string
  /** False: the server refuses scripts with Upstash's flag. Default: scripts are tried with it. */
  readonly keyLocking?: false
  /** The names of the keys of this gateway. */
  readonly keys: RedisKeys
  /** The lanes of a cluster. Default: one server, which is its only lane. */
  readonly lanes?: Lanes
  /** With {@link lanes}: copies revocations and bans to them. */
  readonly broadcast?: Broadcast
  /** How many replicas must have a revocation, a ban or the end of a session. Default 0. */
  readonly replicasAcked?: number
  /**
   * Sends `commands` in one round trip and returns as many replies. Throws `Unavailable` for
   * anything but well-formed replies within the deadline. A call without a response is sent a
   * second time, unless `once` is set, because a repeated call would look like a second use.
   */
  send(commands: readonly RedisCommand[], options?: SendOptions): Promise<readonly RedisReply[]>
}

const ONCE = { once: true }

/** Returns the connection without the retry, for commands that must not run twice, such as `SET NX`. */
export const sentOnce = (redis: RedisConnection): RedisConnection => ({
  ...redis,
  send: (commands, options) => redis.send(commands, options ? { ...options, ...ONCE } : ONCE),
})
