/** Faults that can occur between two processes that communicate over TCP. */

/** A fault that does not change by itself. */
export type LastingFault =
  | { readonly kind: 'none' }
  /** Delays each piece of a response by `ms`, and by up to `jitterMs` more. Keeps the order. */
  | { readonly kind: 'latency'; readonly ms: number; readonly jitterMs?: number | undefined }
  /** Accepts connections but forwards nothing. Held data is forwarded when the fault ends. */
  | { readonly kind: 'hang' }
  /** Stops listening, and resets open connections. */
  | { readonly kind: 'refuse' }
  /**
   * Resets the connection after so many bytes of a response. 0: the target handled the request, but
   * the client receives nothing.
   */
  | { readonly kind: 'reset'; readonly afterBytes: number }
  /** Ends a response after so many bytes, as if it were complete. */
  | { readonly kind: 'truncate'; readonly afterBytes: number }
  | { readonly kind: 'throttle'; readonly bytesPerSecond: number }
  /** Sends this text once on each connection, in front of the next data of the target, such as a reply to no command. */
  | { readonly kind: 'insert'; readonly text: string }
  /** Sends so many random bytes instead of a response, and closes. Does not call the target. */
  | { readonly kind: 'garbage'; readonly bytes?: number | undefined }
  /**
   * Sends this HTTP response and does not call the target. Adds `Content-Length` unless the headers
   * contain it or `Transfer-Encoding`, so that both can be wrong. `close` ends the connection.
   */
  | {
      readonly kind: 'answer'
      readonly status: number
      readonly headers?: Readonly<Record<string, string>> | undefined
      /** UTF-8. For arbitrary bytes, use `bodyBase64`. */
      readonly body?: string | undefined
      readonly bodyBase64?: string | undefined
      readonly close?: boolean | undefined
    }

/** How a proxy treats its traffic. */
export type Fault =
  | LastingFault
  /** Alternates: `down` (default: refuse) for `downMs`, then no fault for `upMs`. */
  | {
      readonly kind: 'flap'
      readonly upMs: number
      readonly downMs: number
      readonly down?: LastingFault | undefined
    }

export const NO_FAULT: LastingFault = { kind: 'none' }
