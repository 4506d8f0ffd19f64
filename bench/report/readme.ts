/** The figures of the README, between two markers. */
import { type Headline, headlinesOf } from './headlines.ts'
import { markdownTable } from './markdown.ts'
import type { Results } from './results.ts'

/** Begins the text that is generated from results. The text around it stays unchanged. */
export const BEGIN = '<!-- figures:begin -->'
/** Ends the generated text. */
export const END = '<!-- figures:end -->'

/** The README has a limit of size, and refers to docs/benchmarks.md for the other figures. */
const SHOWN = 3

/** Returns a table of the first headlines, each with the command and the file of its result. */
export function figuresText(results: Results, linkTo: (path: string) => string): string {
  const headlines = headlinesOf(results).slice(0, SHOWN)
  if (headlines.length === 0) return 'The results contain none of these figures.'
  return markdownTable(
    ['', 'measured', 'aim', 'by'],
    headlines.map(({ what, value, aim, path, command }: Headline) => [
      what,
      `**${value}**`,
      aim,
      `\`${command}\` ([results](${linkTo(path)}))`,
    ]),
  )
}

/** Returns `document` with other figures. Throws an `Error` if it has no markers. */
export function withFigures(document: string, figures: string): string {
  const begin = document.indexOf(BEGIN)
  const end = document.indexOf(END)
  if (begin < 0 || end < begin) throw new Error(`there is no ${BEGIN} ... ${END} for the figures`)
  return `${document.slice(0, begin + BEGIN.length)}\n${figures}\n${document.slice(end)}`
}
