/** Comments that silence a rule: `// portcullis-ignore unlimited-route: the origin limits it`. */
import { readFileSync } from 'node:fs'

const COMMENT = /(?:\/\/|\/\*|^\s*\*)\s*portcullis-ignore ([a-z-]+(?:, ?[a-z-]+)*)/
const IS_ONLY_COMMENT = /^\s*(?:\/\/|\/\*|\*)/

/** Returns the silenced rules by the number of the line, from 1. */
export function ignoresIn(file: string): ReadonlyMap<number, readonly string[]> {
  const ignores = new Map<number, readonly string[]>()
  let waiting: readonly string[] = []
  for (const [index, line] of readFileSync(file, 'utf8').split('\n').entries()) {
    const rules = COMMENT.exec(line)?.[1]?.split(/, ?/) ?? []
    waiting = [...waiting, ...rules]
    // A comment on its own line is about the next line with code.
    if (IS_ONLY_COMMENT.test(line) || line.trim() === '') continue
    if (waiting.length > 0) ignores.set(index + 1, waiting)
    waiting = []
  }
  return ignores
}
