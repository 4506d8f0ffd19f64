/** Waits until the gateway is ready, or has failed. */
import { complaint, type Wrangler } from './wrangler.ts'

const POLL_MS = 100
const REQUEST_TIMEOUT_MS = 5_000
/** Includes the time that wrangler takes to bundle and to start workerd on a busy machine. */
const START_TIMEOUT_MS = 120_000
const DIAGNOSIS_DELAY_MS = 300
/** Minimum time between two requests to the issuers. */
const COMPLAINT_PAUSE_MS = 5_000
/** The name of the check in the response of `GET /-/readyz`. */
const KEY_SETS_FAILED = /"keySets":"failed"/

/** What is read of the process that serves. */
type Output = Pick<Wrangler, 'ended' | 'lines'>

export interface ReadinessOptions {
  /** Whether any response below 500 counts, for an app without health checks. */
  readonly acceptsAnyResponse: boolean
  readonly signal: AbortSignal
  /** Called when the gateway responds but is not ready yet. */
  readonly progress: (what: string) => void
  /**
   * Returns why the gateway has no key sets, one line for each. Called when the gateway reports
   * that.
   */
  readonly keySetComplaints: () => Promise<readonly string[]>
}

/**
 * Resolves when `GET {url}/-/readyz` returns 200. Throws an `Error` with the reason if wrangler
 * ended, the bundle has errors, the gateway is misconfigured, or the timeout has passed. A
 * dependency that fails (503) may recover, so the function waits for it. Problems with key sets are
 * reported whenever they change.
 */
export async function untilReady(
  url: string,
  wrangler: Output,
  { acceptsAnyResponse, signal, progress, keySetComplaints }: ReadinessOptions,
): Promise<void> {
  let ended = false
  wrangler.ended.then(() => {
    ended = true
  })
  const deadline = Date.now() + START_TIMEOUT_MS
  let state = 'the gateway does not respond'
  let complaints: readonly string[] = []
  let complainAgainAt = 0
  async function complain(): Promise<void> {
    const found = await keySetComplaints()
    const isNews = found.join('\n') !== complaints.join('\n')
    complaints = found
    if (signal.aborted || !isNews || found.length === 0) return
    for (const complaint of found) progress(complaint)
    progress(`waiting for at most ${Math.ceil((deadline - Date.now()) / 1000)} s`)
  }
  while (true) {
    signal.throwIfAborted()
    if (ended || hasFailed(wrangler)) throw await diagnosis(wrangler, 'wrangler failed')
    const answer = await readyz(url)
    if (answer?.status === 200) return
    if (acceptsAnyResponse && answer !== undefined && answer.status < 500) return
    if (answer !== undefined) {
      const now = `not ready yet: GET /-/readyz responds ${answer.status} ${answer.body}`
      if (now !== state) progress(now)
      state = now
      if (KEY_SETS_FAILED.test(answer.body) && Date.now() > complainAgainAt) {
        await complain()
        complainAgainAt = Date.now() + COMPLAINT_PAUSE_MS
      }
    }
    const isLate = Date.now() > deadline
    // The Workers' log only says that key sets are missing, without the reason.
    if (isLate && complaints.length > 0) throw new Error(complaints.join('\n'))
    if (isLate || answer?.status === 500) throw await diagnosis(wrangler, state)
    await pause(POLL_MS)
  }
}

async function diagnosis(wrangler: Output, otherwise: string): Promise<Error> {
  // The details follow the headline, or the response, within moments.
  await pause(DIAGNOSIS_DELAY_MS)
  return new Error(complaint(wrangler.lines()) || otherwise)
}

/** Reports whether wrangler waits for a corrected source, which it does without a time limit. */
function hasFailed(wrangler: Output): boolean {
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
