/** The fenced blocks of a Markdown document. */

export interface Block {
  /** The word after the fence: `sh`, `text`. */
  readonly language: string
  readonly text: string
  /** The heading that it stands under. */
  readonly section: string
  /** Line of the fence, from 1. */
  readonly line: number
}

/** Every fenced block, in order. */
export function blocksOf(markdown: string): readonly Block[] {
  const blocks: Block[] = []
  let section = ''
  let open: { language: string; lines: string[]; line: number } | undefined
  for (const [index, line] of markdown.split('\n').entries()) {
    if (open === undefined) {
      const [, heading] = /^#+ (.+)$/.exec(line) ?? []
      section = heading ?? section
      const [, language] = /^```(\w*)$/.exec(line) ?? []
      if (language !== undefined) open = { language, lines: [], line: index + 1 }
    } else if (line === '```') {
      const { language, lines } = open
      blocks.push({ language, text: lines.join('\n'), section, line: open.line })
      open = undefined
    } else {
      open.lines.push(line)
    }
  }
  return blocks
}

/** The output that a document promises for a command: the next block, if that is `text`. */
export function promiseAfter(blocks: readonly Block[], block: Block): string | undefined {
  const next = blocks[blocks.indexOf(block) + 1]
  return next?.language === 'text' && next.section === block.section ? next.text : undefined
}

const SPECIAL = /[.*+?^${}()|[\]\\/]/g

/** A pattern of a promised output, in which `…` stands for anything within a line. */
export function patternOf(promise: string): RegExp {
  const literal = promise.split('…').map((part) => part.replace(SPECIAL, '\\$&'))
  return new RegExp(literal.join('.*'))
}
