/** States of a gateway in which it refuses, brought about by asking. */
import { setTimeout as sleep } from 'node:timers/promises'
import { ask, isRight, type Question } from './ask.ts'
import type { HoldingOrigin } from './odd-origin.ts'
import type { Ready } from './refusals.ts'

/** Addresses of documentation (RFC 5737), each used once: what is counted of them ends by the clock. */
const COUNTED_NETWORK = '198.51.100.'
const POLL_MS = 10
const PATIENCE_MS = 5_000

let addresses = 0

/** `before` as often as it takes from a new address; then `after` is what it is told. */
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
    // What is counted is counted behind the answer.
    await until(async () => isAnswered(url, after))
    return { question: after }
  }
}

/** One request that the origin holds, in a gateway that has room for one. */
export function crowding(
  origin: HoldingOrigin,
  url: string,
  { held, after }: { readonly held: Question; readonly after: Question },
): () => Promise<Ready> {
  return async function crowd() {
    const before = origin.requests()
    const answer = fetch(url + held.path, { headers: held.headers })
    // Where a measurement fails nobody waits for it any more.
    answer.catch(() => {})
    await until(async () => origin.requests() > before)
    return {
      question: after,
      async done() {
        origin.release()
        const response = await answer
        if (!isRight(held, response.status, await response.text()))
          throw new Error(`the request that took the room was answered with ${response.status}`)
        if (origin.requests() > before + 1)
          throw new Error('a request for which there was no room has reached the origin')
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
  throw new Error('the gateway does not come to refuse what it should')
}
