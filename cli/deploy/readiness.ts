/** Waits until a deployed gateway is ready. */
const CALL_TIMEOUT_MS = 5_000
const PAUSE_MS = 1_000
const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export interface Readiness {
  readonly ready: boolean
  /** Describes the last response, such as `status 503, failed: redis`. */
  readonly last: string
}

/**
 * Calls `/-/readyz` until it responds with 200, for at most `waitSeconds`. A signal ends the waiting
 * and not the process, so that the caller can still show the result of the deployment.
 */
export async function awaitReadiness(url: string, waitSeconds: number): Promise<Readiness> {
  const deadline = Date.now() + waitSeconds * 1_000
  let isInterrupted = false
  const interrupt = () => {
    isInterrupted = true
  }
  for (const signal of ENDING) process.on(signal, interrupt)
  try {
    for (;;) {
      const { ready, last } = await callOnce(`${url}/-/readyz`)
      if (ready || isInterrupted || Date.now() + PAUSE_MS > deadline) return { ready, last }
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    }
  } finally {
    for (const signal of ENDING) process.off(signal, interrupt)
  }
}

async function callOnce(url: string): Promise<Readiness> {
  try {
    const signal = AbortSignal.timeout(CALL_TIMEOUT_MS)
    const response = await fetch(url, { signal, redirect: 'manual' })
    const text = await response.text()
    return { ready: response.status === 200, last: `status ${response.status}${failedIn(text)}` }
  } catch (error) {
    const { cause } = error as { readonly cause?: { readonly code?: unknown } }
    const reason = typeof cause?.code === 'string' ? ` (${cause.code})` : ''
    return { ready: false, last: `no response${reason}` }
  }
}

/** Returns the failed checks that the body of a readiness response or a problem document names. */
function failedIn(text: string): string {
  try {
    const { checks = {}, code } = JSON.parse(text) as {
      readonly checks?: Readonly<Record<string, string>>
      readonly code?: string
    }
    const failed = Object.keys(checks).filter((name) => checks[name] !== 'ok')
    if (failed.length > 0) return `, failed: ${failed.join(', ')}`
    return typeof code === 'string' ? `, ${code}` : ''
  } catch {
    return ''
  }
}
