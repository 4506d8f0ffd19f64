/** Ends the open responses of an app's handlers with the rights of their callers. */
import type { MiddlewareHandler } from 'hono'
import type { Admission } from '../access/admission/admission.ts'
import { IS_WORKERS } from '../isolate/platform.ts'
import type { Audit } from '../middleware/audit.ts'
import { createStreamWatch, type StreamWatch, watchHandlers } from '../middleware/open-stream.ts'
import { DEFAULT_RECHECK_GRACE_SECONDS } from '../policy/defaults.ts'
import { createOpenStreams } from '../streams/open-streams.ts'
import { streamsOfWorkers } from '../streams/stream-runtime.ts'
import { watchedResponse } from '../streams/watched-response.ts'
import type { GuardOptions } from './options.ts'

/** Creates the stage around the handlers. */
export type WatchWith = (watchStream: StreamWatch) => MiddlewareHandler

const asResponses: WatchWith = (watchStream) => watchHandlers(watchStream, watchedResponse)

interface WatchedResponsesOptions {
  /** As in the options of the guard. */
  readonly recheckSeconds: GuardOptions['recheckSeconds'] | undefined
  readonly recheckGraceSeconds: GuardOptions['recheckGraceSeconds'] | undefined
  readonly admission: Admission
  readonly audit: Audit
  /** Whether revocations are read from the feed. */
  readonly hasFeed: boolean
  /** Default: watches the response that the handlers return. */
  readonly watchWith: WatchWith | undefined
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Creates the stage around the handlers. It runs after the admission of the caller. */
export function watchedResponses({
  admission,
  audit,
  hasFeed,
  recheckSeconds = streamsOfWorkers(hasFeed || !IS_WORKERS).recheckSeconds,
  watchWith = asResponses,
  recheckGraceSeconds = DEFAULT_RECHECK_GRACE_SECONDS,
  now,
}: WatchedResponsesOptions): MiddlewareHandler {
  const watchStream = createStreamWatch({
    streams: createOpenStreams({
      recheck: (callers) => admission.recheck(callers),
      now,
      isShared: !IS_WORKERS,
    }),
    terms: {
      recheckMs: recheckSeconds * 1_000,
      graceMs: recheckGraceSeconds * 1_000,
      finishes: false,
    },
    ended: audit.recordEnd,
  })
  return watchWith(watchStream)
}
