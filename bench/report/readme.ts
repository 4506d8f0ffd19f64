/** The figures of the README: a handful, between two markers. */
import { type Headline, headlinesOf } from './headlines.ts'
import { markdownTable } from './markdown.ts'
import type { Results } from './results.ts'

/** What is between them is made of results; what is around them is not touched. */
export const BEGIN = '<!-- figures:begin -->'
/** See {@link BEGIN}. */
export const END = '<!-- figures:end -->'

/** The table of headlines, each with its file and the command that made it. */
export function figuresText(results: Results, linkTo: (path: string) => string): string {
  const headlines = headlinesOf(results)
  if (headlines.length === 0) return 'The results hold none of these figures.'
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

/** `document` with other figures in it. Throws an `Error` where it has no place for them. */
export function withFigures(document: string, figures: string): string {
  const begin = document.indexOf(BEGIN)
  const end = document.indexOf(END)
  if (begin < 0 || end < begin) throw new Error(`there is no ${BEGIN} ... ${END} for the figures`)
  return `${document.slice(0, begin + BEGIN.length)}\n${figures}\n${document.slice(end)}`
}
