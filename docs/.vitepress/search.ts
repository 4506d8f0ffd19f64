/**
 * Search of the documentation site. It leaves out records, and words such as "a" match nothing. VitePress sends the
 * functions of `searchWords` and `searchOptions` to the browser as text, so they use no name from outside.
 */
import { isRecord } from './pages.ts'

/** Returns the HTML of a page that the index contains: none of a record. */
export function searchableHtml(
  source: string,
  env: { readonly relativePath: string },
  markdown: { render(source: string, env: object): string },
): string {
  const html = markdown.render(source, env)
  return isRecord(env.relativePath) ? '' : html
}

/** How words are indexed and searched. */
export const searchWords = {
  processTerm: (term: string): string | undefined => {
    const word = term.toLowerCase()
    const meansNothing =
      /^(a|an|and|are|as|at|be|by|can|do|does|for|from|get|how|i|if|in|is|it|its|me|my|not|of|on|or|put|that|the|this|to|was|we|what|when|where|which|with|you|your)$/
    return meansNothing.test(word) ? undefined : word
  },
}

export const searchOptions = {
  // A question has words that its answer has not. A section with more of the words ranks higher.
  combineWith: 'OR' as const,
  prefix: (term: string): boolean => term.length > 2,
  fuzzy: (term: string): number | false => (term.length > 4 ? 0.15 : false),
  boost: { title: 4, titles: 2, text: 1 },
  // The first page and the index of the configuration only list other pages.
  boostDocument: (id: string): number => (/\/(configuration)?(#|$)/.test(id) ? 0.2 : 1),
}
