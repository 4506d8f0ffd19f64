/** Sends one request of a check, and describes why there was no response. */
import { unreachable } from '../../dev/start/unreachable.ts'

/** Much longer than the gateway waits, so that a slow server is found to be slow, not absent. */
export const TIMEOUT_MS = 5_000

export interface Answer {
  readonly status: number
  readonly text: string
  readonly headers: Headers
  readonly durationMs: number
}

/** Returns the response, or the reason for its absence: `cannot be reached (ECONNREFUSED)`. */
export async function request(url: URL | string, init: RequestInit = {}): Promise<Answer | string> {
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const startMs = performance.now()
  try {
    // A redirect would send credentials to another server.
    const response = await fetch(url, { ...init, redirect: 'manual', signal })
    const text = await response.text()
    const { status, headers } = response
    return { status, text, headers, durationMs: performance.now() - startMs }
  } catch (error) {
    if (signal.aborted) return `does not respond within ${TIMEOUT_MS} ms`
    return unreachable(error as Error)
  }
}

/** Returns a URL without its query, which may be secret. */
export function shownUrl(url: string): string {
  const { origin, pathname } = new URL(url)
  return pathname === '/' ? origin : origin + pathname
}
