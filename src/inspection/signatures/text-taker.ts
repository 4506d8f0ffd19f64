/** Collects the verdicts of the texts of one request. */
import { pathOf } from '../../http/path.ts'
import { scan } from './scanner.ts'
import type { Verdict, VerdictCache } from './verdict-cache.ts'

/** Scans the texts of a request, one at a time. */
export interface TextTaker {
  take(text: string): void
  /** The rules that any of the texts matched. */
  readonly verdict: Verdict
}

/** Matches most paths. They contain nothing that a signature could match. */
const PLAIN_PATH = /^[\w/.~-]*$/

/** Creates the text taker of one request; `cache` is the isolate's cache. */
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

/** Scans the decoded segments of a URL's path. Does NOT refuse a path: `canonicalPath` does. */
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
