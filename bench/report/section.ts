/** Types of the sections of the page. */
import type { Html } from './html.ts'

/** A section of the page, with its entry in the table of contents. */
export interface Section {
  readonly id: string
  readonly title: string
  readonly body: Html
  /** Subsections with their own entries. */
  readonly parts?: readonly Pick<Section, 'id' | 'title'>[]
}

/** Description of a scenario, in addition to its measurements. */
export interface Described {
  readonly title: string
  readonly measures: string
  readonly asserts: readonly string[]
}

export interface PageOptions {
  readonly scenarios: ReadonlyMap<string, Described>
  /** Returns the URL of a file, relative to the page. */
  readonly linkTo: (path: string) => string
}
