/** Types of the report's contents, which the page and the Markdown document render. */
import type { Plot } from '../scenario.ts'

/** Text with a link to an anchor of the page, or to a file; parts between backticks are code. */
export interface Linked {
  readonly text: string
  readonly anchor?: string
  /** Absolute path, or a path relative to the repository. */
  readonly file?: string
}

/** A verdict about a measured value. */
export interface Badge {
  readonly badge: string
  readonly tone: 'good' | 'bad' | 'open'
}

export type Cell = string | Linked | Badge | readonly Linked[]

export interface TableBlock {
  readonly kind: 'table'
  readonly title: string
  readonly headings: readonly string[]
  readonly rows: readonly (readonly Cell[])[]
  /** The text of the control that unfolds the table on the page. Undefined: it is not folded. */
  readonly folded?: string
  readonly onlyOnPage?: boolean
}

export type Block =
  | { readonly kind: 'text'; readonly text: string; readonly onlyOnPage?: boolean }
  | { readonly kind: 'heading'; readonly text: string; readonly id: string }
  | {
      readonly kind: 'list'
      readonly items: readonly (string | Linked)[]
      readonly tone?: 'note' | 'alarm'
    }
  | TableBlock
  /** Only on the page. `anchor` makes the ids of the image unique. */
  | {
      readonly kind: 'plot'
      readonly plot: Plot
      readonly anchor: string
      readonly source?: Linked
    }

/** A section, with its entry in the table of contents. */
export interface Section {
  readonly id: string
  readonly title: string
  readonly blocks: readonly Block[]
}

/** Description of a scenario, in addition to its measurements. */
export interface Described {
  readonly title: string
  readonly measures: string
  readonly asserts: readonly string[]
}

/** All scenarios by id. */
export type Scenarios = ReadonlyMap<string, Described>

/** Returns a URL of a file, relative to the rendered document. */
export type LinkTo = (path: string) => string

/** Creates the badge `met`, `missed`, or that the run was too short to decide. */
export function badgeOf(isMet: boolean | undefined): Badge {
  if (isMet === undefined) return { badge: 'too short to decide', tone: 'open' }
  return isMet ? { badge: 'met', tone: 'good' } : { badge: 'missed', tone: 'bad' }
}
