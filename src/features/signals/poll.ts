/** Fetches events from a transmitter (RFC 8936). */
import * as z from 'zod/mini'
import { call } from '../../access/tokens/document.ts'
import { Denied, Unavailable } from '../../errors.ts'
import type { Task } from '../../gateway/feature.ts'
import { parseStrictJson } from '../../http/strict-json.ts'
import type { WaitUntil } from '../../isolate/after-response.ts'
import type { Receiver, Reception } from './receiver.ts'
import { setErrorOf, signalRefused } from './refused.ts'
import type { SignalStore } from './signal-store.ts'
import type { Transmitter } from './transmitter.ts'

export interface PollOptions {
  readonly transmitter: string
  readonly url: string
  readonly everySeconds: number
  readonly receiver: Receiver
  readonly store: Pick<SignalStore, 'reservePoll'>
  /** Returns the value of `Authorization`. `renew`: the last one was refused. */
  readonly accessToken: (renew?: 'renew') => Promise<string | undefined>
  readonly recorded: (outcome: Reception | Denied, waitUntil: WaitUntil) => void
  /** Reports a failure: once, until a poll succeeds. */
  readonly failed: (error: Unavailable) => void
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Of one response. */
const MAX_EVENTS = 50
/** A token has at most 64 KiB, but few have more than two. */
const MAX_BYTES = 1_048_576
const CALL_TIMEOUT_MS = 10_000
/** A transmitter that always has more events is called this often in one run. */
const MAX_CALLS = 10
const MAX_DEPTH = 4

const pollResponse = z.looseObject({
  sets: z.record(z.string(), z.string()),
  moreAvailable: z.optional(z.boolean()),
})

/** What the next call reports to the transmitter about the events of the last one. */
interface Answers {
  readonly ack: string[]
  readonly setErrs: Record<string, { readonly err: string; readonly description: string }>
}

/**
 * Creates the task. An event is acknowledged after its effect is stored. If Redis fails, the
 * transmitter keeps the event and sends it again. One of all gateways polls; should two do so, each
 * event still has its effect once.
 */
export function createPoll(options: PollOptions): Task {
  const { transmitter, url, everySeconds, receiver, store, recorded, failed, now } = options
  let hasFailed = false

  async function isPolled({ issuer }: Transmitter): Promise<void> {
    if (issuer !== transmitter) throw signalRefused('iss')
  }

  async function send(answers: Answers, maxEvents: number, renew?: 'renew'): Promise<string> {
    const authorization = await options.accessToken(renew)
    const { status, text } = await call(
      url,
      {
        method: 'POST',
        headers: {
          accept: 'application/json',
          'content-type': 'application/json',
          ...(authorization !== undefined && { authorization }),
        },
        body: JSON.stringify({ maxEvents, returnImmediately: true, ...answersOf(answers) }),
      },
      {
        dependency: 'identity_provider',
        maxBytes: MAX_BYTES,
        signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
      },
    )
    if (status === 200) return text
    if (status === 401 && renew === undefined) return send(answers, maxEvents, 'renew')
    throw new Unavailable('identity_provider', 'refused')
  }

  async function receiveOne(name: string, text: string, answers: Answers, waitUntil: WaitUntil) {
    try {
      const reception = await receiver.receive(text, isPolled, waitUntil)
      recorded(reception, waitUntil)
      answers.ack.push(name)
    } catch (error) {
      if (!(error instanceof Denied)) throw error
      recorded(error, waitUntil)
      answers.setErrs[name] = setErrorOf(error)
    }
  }

  async function poll(waitUntil: WaitUntil): Promise<void> {
    const untilMs = now() + everySeconds * 1_000
    let answers = newAnswers()
    try {
      for (let calls = 0; calls < MAX_CALLS && now() < untilMs; calls++) {
        const text = await send(answers, MAX_EVENTS)
        answers = newAnswers()
        const { sets, moreAvailable = false } = parsed(text)
        const page = answers
        const received = await Promise.allSettled(
          Object.entries(sets)
            .slice(0, MAX_EVENTS)
            .map(([name, token]) => receiveOne(name, token, page, waitUntil)),
        )
        for (const result of received) if (result.status === 'rejected') throw result.reason
        if (!moreAvailable) break
      }
    } finally {
      // Also of the events before one that could not be stored.
      if (isAnswer(answers)) await send(answers, 0)
    }
  }

  return {
    everySeconds,
    async run(waitUntil) {
      try {
        // A second less, so that the next run is never too early.
        if (!(await store.reservePoll(transmitter, everySeconds - 1))) return
        await poll(waitUntil)
        hasFailed = false
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error
        if (!hasFailed) failed(error)
        hasFailed = true
      }
    },
  }
}

const newAnswers = (): Answers => ({ ack: [], setErrs: {} })

const isAnswer = ({ ack, setErrs }: Answers): boolean =>
  ack.length > 0 || Object.keys(setErrs).length > 0

const answersOf = ({ ack, setErrs }: Answers) => ({
  ...(ack.length > 0 && { ack }),
  ...(Object.keys(setErrs).length > 0 && { setErrs }),
})

function parsed(text: string): z.output<typeof pollResponse> {
  try {
    return pollResponse.parse(parseStrictJson(text, { maxDepth: MAX_DEPTH }))
  } catch (cause) {
    throw new Unavailable('identity_provider', 'malformed', { cause })
  }
}
