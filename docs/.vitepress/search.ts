/**
 * Search of the documentation site: guides rank above records, and words such as "a" match nothing. VitePress sends these
 * functions to the browser as text, so they use no name from outside.
 */

/** How words are indexed and searched. */
export const searchWords = {
  processTerm: (term: string): string | undefined => {
    const word = term.toLowerCase()
    return /^(a|an|and|are|as|at|be|by|do|does|for|from|how|i|if|in|is|it|my|not|of|on|or|the|to|what|when|where|which|with)$/.test(
      word,
    )
      ? undefined
      : word
  },
}

export const searchOptions = {
  combineWith: 'AND' as const,
  prefix: (term: string): boolean => term.length > 2,
  fuzzy: (term: string): number | false => (term.length > 4 ? 0.15 : false),
  boost: { title: 4, titles: 2, text: 1 },
  boostDocument: (id: string): number =>
    /\/(decisions|design)\/|\/(benchmarks|checklist)/.test(id) ? 0.3 : 1,
}
