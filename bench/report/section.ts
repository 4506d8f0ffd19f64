/** What a part of the page is, and what it may know. */
import type { Html } from './html.ts'

/** A part of the page, and its line in the table of contents. */
export interface Section {
  readonly id: string
  readonly title: string
  readonly body: Html
  /** Parts of it that have a line of their own. */
  readonly parts?: readonly Pick<Section, 'id' | 'title'>[]
}

/** What is known of a scenario beside what it measured. */
export interface Described {
  readonly title: string
  readonly measures: string
  readonly asserts: readonly string[]
}

/** What the page is made of, besides results. */
export interface PageOptions {
  /** Every scenario that there is, by id. */
  readonly scenarios: ReadonlyMap<string, Described>
  /** The address of a file, from the page. */
  readonly linkTo: (path: string) => string
}
