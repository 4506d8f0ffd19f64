/**
 * `node test/features/signatures/measure.ts`: writes the figures of the signatures to
 * `signature-figures.json`, and prints the tables of docs/design/signature-measurements.md. With
 * `--list <name> <category> <file>...` it measures third-party lists, one text per line (with tabs
 * between the values of one request), and stores their figures beside its own.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { FIGURES, readFigures, tablesOf } from './figure-tables.ts'
import { figures, signatureOf } from './signature-figures.ts'

/** Returns whether one of the values is refused, raw or decoded as a query value. */
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
const others = { ...readFigures().others }
if (option === '--list') {
  const lines = files.flatMap((file) => readFileSync(file, 'utf8').split(/\r?\n/))
  const texts = [...new Set(lines.filter((line) => line.trim() !== ''))]
  const refused = texts.filter(isRefused).length
  others[name] = { ...others[name], [category]: { texts: texts.length, refused } }
}
const measured = { ...figures(), others }
writeFileSync(FIGURES, `${JSON.stringify(measured, null, 2)}\n`)
const { harmless, attacks } = tablesOf(measured)
console.log([...harmless, '', ...attacks].join('\n'))
