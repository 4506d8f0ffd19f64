/**
 * `node test/inspection/measure.ts`: writes the figures of the signatures, which the decisions
 * quote, to `signature-figures.json`. With `--list <name> <category> <file>...` it measures lists of
 * others, a text a line (with tabs between the values of one request), and keeps their figures
 * beside its own.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { figures, signatureOf } from './signature-figures.ts'

export const FIGURES = join(import.meta.dirname, 'signature-figures.json')

/** Whether any of its values is, as it stands or as a query's value would arrive. */
function isRefused(line: string): boolean {
  if (line.includes('\t')) return line.split('\t').some(isRefused)
  if (signatureOf(line) !== undefined) return true
  try {
    return signatureOf(decodeURIComponent(line.replaceAll('+', ' '))) !== undefined
  } catch {
    return false
  }
}

const [option, name = '', category = '', ...files] = process.argv.slice(2)
const { others = {} } = JSON.parse(readFileSync(FIGURES, 'utf8'))
if (option === '--list') {
  const lines = files.flatMap((file) => readFileSync(file, 'utf8').split(/\r?\n/))
  const texts = [...new Set(lines.filter((line) => line.trim() !== ''))]
  const refused = texts.filter(isRefused).length
  others[name] = { ...others[name], [category]: { texts: texts.length, refused } }
}
writeFileSync(FIGURES, `${JSON.stringify({ ...figures(), others }, null, 2)}\n`)
