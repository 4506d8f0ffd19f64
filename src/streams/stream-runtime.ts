/** What differs between runtimes in how open streams are checked and ended. */
import type { OpenStream } from './open-streams.ts'
import { watchedResponse } from './watched-response.ts'

export interface StreamRuntime {
  /** How often routes that name no interval are checked, in seconds. */
  readonly recheckSeconds: number
  /** Whether all requests share one timer and each other's I/O. */
  readonly isShared: boolean
  /** Returns the response, whose body breaks off when the stream must end. */
  watch(response: Response, stream: OpenStream, method: string): Response
}

/** With a view of revocations, one call refreshes it for all callers. */
export const RECHECK_SECONDS = { withFeed: 2, withoutFeed: 30 } as const

/** On Workers each check is a subrequest, so it is rarer without the revocation feed. */
export const streamsOfWorkers = (hasFeed: boolean): StreamRuntime => ({
  recheckSeconds: hasFeed ? RECHECK_SECONDS.withFeed : RECHECK_SECONDS.withoutFeed,
  isShared: false,
  watch: watchedResponse,
})
