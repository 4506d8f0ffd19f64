/** Waits for the gateway to be ready, or to be past hope. */
import { complaint, type Wrangler } from './wrangler.ts'

const POLL_MS = 100
const REQUEST_TIMEOUT_MS = 5_000
/** wrangler bundles and starts workerd meanwhile; a busy machine takes its time. */
const START_TIMEOUT_MS = 120_000
/** How long the gateway may answer, but not as ready. */
const UNREADY_TIMEOUT_MS = 20_000
const DIAGNOSIS_DELAY_MS = 300

/**
 * Resolves when `GET {url}/-/readyz` answers 200. Throws an `Error` that says why it does not:
 * wrangler ended, the bundle has errors, or the gateway answers something else.
 */
export async function untilReady(
  url: string,
  wrangler: Wrangler,
  signal: AbortSignal,
): Promise<void> {
  let ended = false
  wrangler.ended.then(() => {
    ended = true
  })
  const started = Date.now()
  let answeredSince: number | undefined
  let answer = 'it does not answer'
  while (true) {
    signal.throwIfAborted()
    if (ended || hasFailed(wrangler)) {
      // The complaint follows its headline within moments.
      await pause(DIAGNOSIS_DELAY_MS)
      throw new Error(complaint(wrangler.lines()) || 'wrangler ended without a word')
    }
    const response = await readyz(url)
    if (response?.status === 200) return
    if (response !== undefined) {
      answeredSince ??= Date.now()
      answer = `GET /-/readyz answers ${response.status}: ${response.body}`
    }
    const now = Date.now()
    const late = now - started > START_TIMEOUT_MS
    if (late || response?.status === 500 || now - (answeredSince ?? now) > UNREADY_TIMEOUT_MS) {
      await pause(DIAGNOSIS_DELAY_MS)
      const words = complaint(wrangler.lines())
      throw new Error(words === '' ? answer : `${answer}\n${words}`)
    }
    await pause(POLL_MS)
  }
}

/** wrangler waits for a corrected source after these, for ever. */
function hasFailed(wrangler: Wrangler): boolean {
  return wrangler.lines().some((line) => /Build failed with|runtime failed to start/.test(line))
}

async function readyz(url: string): Promise<{ status: number; body: string } | undefined> {
  try {
    const response = await fetch(`${url}/-/readyz`, {
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    })
    return { status: response.status, body: (await response.text()).trim() }
  } catch {
    return undefined
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
