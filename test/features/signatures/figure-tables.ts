/** Formats the committed figures as the table rows in docs/design/signature-measurements.md. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Share } from './signature-figures.ts'

export const FIGURES = join(import.meta.dirname, 'signature-figures.json')

type Shares = Readonly<Record<string, Share>>

export interface Figures {
  readonly attacks: Shares
  readonly harmless: Share
  readonly aboutAttacks: Share
  readonly programming: Shares
  /** The figures of third-party lists, by source and commit. */
  readonly others: Readonly<Record<string, Shares>>
}

export function readFigures(): Figures {
  return JSON.parse(readFileSync(FIGURES, 'utf8'))
}

function row(name: string, { texts, refused }: Share): string {
  const percent = ((refused / texts) * 100).toFixed(refused > 0 && refused * 100 < texts ? 2 : 0)
  return `| ${name} | ${texts.toLocaleString('en')} | ${refused.toLocaleString('en')} (${percent} %) |`
}

const wordsOf = (category: string) => category.replaceAll('_', ' ')

/** Returns the rows of both tables as lines. */
export function tablesOf({ attacks, harmless, aboutAttacks, programming, others }: Figures) {
  const ofOthers = Object.entries(others).flatMap(([source, shares]) =>
    Object.entries(shares).map(([category, share]) => ({ source, category, share })),
  )
  return {
    harmless: [
      row('names, addresses, sentences, mails, formulas, links, each short', harmless),
      ...Object.entries(programming).map(([name, share]) => row(`packages: ${name}`, share)),
      ...ofOthers
        .filter(({ category }) => category === 'harmless')
        .map(({ source, share }) => row(`${source}: what must pass`, share)),
      row('sentences that quote an attack', aboutAttacks),
    ],
    attacks: [
      ...Object.entries(attacks).map(([name, share]) => row(`own: ${wordsOf(name)}`, share)),
      ...ofOthers
        .filter(({ category }) => category !== 'harmless')
        .map(({ source, category, share }) => row(`${source}: ${wordsOf(category)}`, share)),
    ],
  }
}
