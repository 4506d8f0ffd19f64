/** `npm run bench:report`: generates the report, and the figures of the documents, from results. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, relative } from 'node:path'
import { runProgram } from '../main.ts'
import { readOptions, USAGE } from './options.ts'
import { outputsOf } from './outputs.ts'

await runProgram({
  name: 'report',
  command: 'npm run bench:report',
  usage: USAGE,
  // An invalid results file is reported like an invalid option.
  readOptions(argv) {
    const options = readOptions(argv)
    return options === 'help' ? options : { check: options.check, outputs: outputsOf(options) }
  },
  async run({ check, outputs }, { progress }) {
    let stale = 0
    for (const { path, text } of outputs) {
      const name = relative(process.cwd(), path)
      if (!check) {
        mkdirSync(dirname(path), { recursive: true })
        writeFileSync(path, text)
        progress(`written to ${name}`)
      } else if (!existsSync(path) || readFileSync(path, 'utf8') !== text) {
        stale++
        progress(`${name} does not match the results: npm run bench:report`)
      }
    }
    return stale === 0 ? 0 : 1
  },
})
