/** Brings a gateway into states in which it refuses requests. */
import { setTimeout as sleep } from 'node:timers/promises'
import { ask } from '../load/closed.ts'
import { isRight, type Question } from '../load/questions.ts'
import type { HoldingOrigin } from './holding-origin.ts'
import type { Ready } from './refusals.ts'

/**
 * Documentation addresses (RFC 5737). Each is used once, because its counters expire only with
 * time.
 */
const COUNTED_NETWORK = '198.51.100.'
const POLL_MS = 10
const PATIENCE_MS = 5_000

let addresses = 0

/** Sends `before` from a new address, `times` times, and waits until the response is `after`. */
export function repeating(
  url: string,
  times: number,
  questionsOf: (address: string) => { readonly before: Question; readonly after: Question },
): () => Promise<Ready> {
  return async function repeat() {
    addresses += 1
    const { before, after } = questionsOf(COUNTED_NETWORK + addresses)
    await ask({
      ...{ url, connections: 1, until: 'once' },
      questions: Array.from({ length: times }, () => before),
    })
    // The gateway counts after the response.
    await until(async () => isAnswered(url, after))
    return { question: after }
  }
}

/** Sends one request that the origin delays, to a gateway with room for only one. */
export function crowding(
  origin: HoldingOrigin,
  url: string,
  { held, after }: { readonly held: Question; readonly after: Question },
): () => Promise<Ready> {
  return async function crowd() {
    const before = origin.requests()
    const answer = fetch(url + held.path, { headers: held.headers })
    // If a measurement fails, no code awaits this promise.
    answer.catch(() => {})
    await until(async () => origin.requests() > before)
    return {
      question: after,
      async done() {
        origin.release()
        const response = await answer
        if (!isRight(held, response.status, await response.text()))
          throw new Error(`the request in progress was answered with ${response.status}`)
        if (origin.requests() > before + 1)
          throw new Error('a request above the maximum reached the origin')
      },
    }
  }
}

async function isAnswered(url: string, question: Question): Promise<boolean> {
  const { method, path, headers } = question
  const response = await fetch(url + path, { method, headers })
  return isRight(question, response.status, await response.text())
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (let waited = 0; waited < PATIENCE_MS; waited += POLL_MS) {
    if (await isSo()) return
    await sleep(POLL_MS)
  }
  throw new Error('the gateway does not refuse the request as expected')
}
