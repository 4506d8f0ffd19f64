/** The fenced blocks and the headings of a Markdown document. */

export interface Block {
  /** The word after the fence: `sh`, `text`. */
  readonly language: string
  /** The lines between the fences, without the indentation of the fence. */
  readonly text: string
  /** The heading above the block. */
  readonly section: string
  /** Line of the fence, from 1. */
  readonly line: number
}

interface Outline {
  readonly blocks: readonly Block[]
  readonly headings: readonly string[]
  /** The document without its fenced blocks. */
  readonly prose: string
}

/** Reads blocks and headings. Blocks may be indented, as in a list. Throws if a fence is not closed. */
export function outlineOf(markdown: string): Outline {
  const blocks: Block[] = []
  const headings: string[] = []
  const prose: string[] = []
  let open: { fence: string; language: string; lines: string[]; line: number } | undefined
  for (const [index, line] of markdown.split('\n').entries()) {
    if (open === undefined) {
      const [, heading] = /^#+ (.+)$/.exec(line) ?? []
      if (heading !== undefined) headings.push(heading)
      const [, fence, language] = /^( *```)(\w*)$/.exec(line) ?? []
      if (fence === undefined) prose.push(line)
      else open = { fence, language: language ?? '', lines: [], line: index + 1 }
    } else if (line === open.fence) {
      const { fence, language, lines, line: start } = open
      const indent = new RegExp(`^ {0,${fence.length - '```'.length}}`)
      const text = lines.map((one) => one.replace(indent, '')).join('\n')
      blocks.push({ language, text, section: headings.at(-1) ?? '', line: start })
      open = undefined
    } else {
      open.lines.push(line)
    }
  }
  if (open !== undefined) throw new Error(`line ${open.line}: the block is not closed`)
  return { blocks, headings, prose: prose.join('\n') }
}

/** Returns every fenced block, in order. */
export const blocksOf = (markdown: string): readonly Block[] => outlineOf(markdown).blocks

/** Returns the output that a document promises for a command: the next block, if it is `text`. */
export function promiseAfter(blocks: readonly Block[], block: Block): string | undefined {
  const next = blocks[blocks.indexOf(block) + 1]
  return next?.language === 'text' && next.section === block.section ? next.text : undefined
}

const SPECIAL = /[.*+?^${}()|[\]\\/]/g

/** Returns a pattern of a promised output, in which `…` matches any text within a line. */
export function patternOf(promise: string): RegExp {
  const literal = promise.split('…').map((part) => part.replace(SPECIAL, '\\$&'))
  return new RegExp(literal.join('.*'))
}

/** Returns code without indentation, so that an excerpt can be found in its file. */
export const unindented = (code: string): string => code.replace(/^[ \t]+/gm, '')
