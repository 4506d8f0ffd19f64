/** Waits until a deployed gateway or app is ready. */
import { objectIn } from '../json.ts'

const CALL_TIMEOUT_MS = 5_000
const PAUSE_MS = 1_000
const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export interface Readiness {
  readonly ready: boolean
  /** Describes the last response, such as `status 503, failed: redis`. */
  readonly last: string
}

/** What is called, and which status says that it serves. */
export interface Probe {
  readonly path: string
  isReady(status: number): boolean
}

const GATEWAY: Probe = { path: '/-/readyz', isReady: (status) => status === 200 }
/** An app has no path that is known here. Wrong options are 500 on every path, and an outage is 503. */
export const APP: Probe = { path: '/', isReady: (status) => status < 500 }

/**
 * Calls the path of the probe until its status says that it is ready, for at most `waitSeconds`. A signal ends the waiting
 * and not the process, so that the caller can still show the result of the deployment.
 */
export async function awaitReadiness(
  url: string,
  waitSeconds: number,
  probe = GATEWAY,
): Promise<Readiness> {
  const deadline = Date.now() + waitSeconds * 1_000
  let isInterrupted = false
  const interrupt = () => {
    isInterrupted = true
  }
  for (const signal of ENDING) process.on(signal, interrupt)
  try {
    for (;;) {
      const { ready, last } = await callOnce(url, probe)
      if (ready || isInterrupted || Date.now() + PAUSE_MS > deadline) return { ready, last }
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    }
  } finally {
    for (const signal of ENDING) process.off(signal, interrupt)
  }
}

async function callOnce(url: string, { path, isReady }: Probe): Promise<Readiness> {
  try {
    const signal = AbortSignal.timeout(CALL_TIMEOUT_MS)
    const response = await fetch(url + path, { signal, redirect: 'manual' })
    const text = await response.text()
    return { ready: isReady(response.status), last: `status ${response.status}${failedIn(text)}` }
  } catch (error) {
    const { cause } = error as { readonly cause?: { readonly code?: unknown } }
    const reason = typeof cause?.code === 'string' ? ` (${cause.code})` : ''
    return { ready: false, last: `no response${reason}` }
  }
}

/** Returns the failed checks that the body of a readiness response or a problem document names. */
function failedIn(text: string): string {
  const { checks, code } = (objectIn(text) ?? {}) as Readonly<Record<string, unknown>>
  const failed = Object.entries(checks ?? {}).filter(([, state]) => state !== 'ok')
  if (failed.length > 0) return `, failed: ${failed.map(([name]) => name).join(', ')}`
  return typeof code === 'string' ? `, ${code}` : ''
}
