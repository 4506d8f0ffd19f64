/**
 * `npm run bench:report`: generates a page, a summary and the README's figures from results files.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, relative } from 'node:path'
import { type ReportOptions, readOptions, USAGE } from './options.ts'
import { type Output, outputsOf } from './outputs.ts'

/** Reports whether all outputs are up to date. */
function check(outputs: readonly Output[]): boolean {
  const stale = outputs.filter(
    ({ path, text }) => !existsSync(path) || readFileSync(path, 'utf8') !== text,
  )
  for (const { path } of stale)
    console.error(`report: ${nameOf(path)} does not match the results: npm run bench:report`)
  return stale.length === 0
}

function write({ path, text }: Output): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  console.error(`report: written to ${nameOf(path)}`)
}

const nameOf = (path: string) => relative(process.cwd(), path)

/** Generates the report. Returns the exit code. */
function report(options: ReportOptions): number {
  const outputs = outputsOf(options)
  if (options.check) return check(outputs) ? 0 : 1
  outputs.forEach(write)
  return 0
}

try {
  const options = readOptions(process.argv.slice(2))
  if (options === 'help') console.log(USAGE)
  else process.exitCode = report(options)
} catch (error) {
  const [problem] = (error as Error).message.split('\n')
  console.error(`report: ${problem}\nSee: npm run bench:report -- --help`)
  process.exitCode = 2
}
