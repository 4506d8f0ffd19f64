/** Shows credentials to a gateway, each once, and looks at every answer. */
import { setTimeout as sleep } from 'node:timers/promises'
import { ORIGIN_BODY } from '../backends.ts'
import { COMMON_HEADERS } from '../order-requests.ts'
import { createClient } from '../soak/client.ts'

const CONNECTIONS = 24
/** A machine that is busy with something else misses deadlines: that is no wrong answer. */
const ATTEMPTS = 5
const PAUSE_MS = 100

export interface Presenter {
  /** Throws an `Error` of one line unless each of them is answered as the origin answers, at last. */
  present(credentials: readonly string[]): Promise<void>
  /** Right answers so far. */
  answered(): number
  /** Answers that nobody could tell (503), so that the same was asked again. */
  repeated(): number
  close(): void
}

/** `url` is that of the gateway. */
export function createPresenter(url: string): Presenter {
  const client = createClient(CONNECTIONS)
  let answered = 0
  let repeated = 0

  async function presentOne(credential: string, attempts = ATTEMPTS): Promise<void> {
    const { status, body } = await client.send({
      url: `${url}/orders?limit=20`,
      method: 'GET',
      headers: { ...COMMON_HEADERS, authorization: `Bearer ${credential}` },
    })
    if (status === 503 && attempts > 1) {
      repeated++
      await sleep(PAUSE_MS)
      return presentOne(credential, attempts - 1)
    }
    if (status !== 200 || body !== ORIGIN_BODY)
      throw new Error(`a good credential was answered with ${status || 'nothing'}`)
    answered++
  }

  return {
    async present(credentials) {
      const rest = credentials.values()
      async function goOn(): Promise<void> {
        for (const credential of rest) await presentOne(credential)
      }
      await Promise.all(Array.from({ length: CONNECTIONS }, goOn))
    },
    answered: () => answered,
    repeated: () => repeated,
    close: client.close,
  }
}
