/** Gathers what the signatures say of the texts of one request. */
import { pathOf } from '../../validators/path.ts'
import { scan } from './scanner.ts'
import type { Verdict, VerdictCache } from './verdict-cache.ts'

/** Takes the texts of a request, one by one. */
export interface TextTaker {
  take(text: string): void
  /** The rules that any of them matched. */
  readonly verdict: Verdict
}

/** Most paths are no more than this, and say nothing. */
const PLAIN_PATH = /^[\w/.~-]*$/

/** Makes the taker for one request; `cache` is the isolate's. */
export function createTextTaker(cache: VerdictCache): TextTaker {
  let verdict: Verdict = 0
  return {
    take(text) {
      verdict |= scan(text, cache)
    },
    get verdict() {
      return verdict
    },
  }
}

/** Takes the segments of a URL's path, decoded. Does NOT refuse a path: `canonicalPath` does. */
export function takePath(url: string, texts: TextTaker): void {
  const path = pathOf(url)
  if (PLAIN_PATH.test(path)) return
  for (const segment of path.split('/')) texts.take(decoded(segment))
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
