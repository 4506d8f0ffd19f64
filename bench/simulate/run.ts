/** `npm run simulate`: simulates a fleet of gateways. */
import { writeFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { ROOT } from '../../dev/start/settings.ts'
import { runProgram } from '../main.ts'
import { readOptions, USAGE } from './options.ts'
import { plotOf } from './plot.ts'
import { pageOf, textOf } from './report.ts'
import { simulate, violationsOf } from './simulate.ts'

await runProgram({
  name: 'simulate',
  command: 'npm run simulate',
  usage: USAGE,
  readOptions,
  async run(options, { progress }) {
    const simulated = await simulate(options, progress)
    const write = (path: string, text: string) => {
      writeFileSync(path, text)
      progress(`written to ${relative(process.cwd(), path)}`)
    }
    if (options.svg !== undefined) write(resolve(options.svg), plotOf(simulated))
    if (options.report) {
      write(join(ROOT, 'docs', 'fleet.md'), pageOf(simulated))
      write(join(ROOT, 'docs', 'images', 'fleet.svg'), plotOf(simulated))
    } else console.log(options.json ? jsonOf(simulated) : textOf(simulated))
    const violations = violationsOf(simulated)
    for (const violation of violations) progress(violation)
    return violations.length === 0 ? 0 : 1
  },
})

/** Maps become objects. */
function jsonOf(simulated: object): string {
  const plain = (_: string, value: unknown) =>
    value instanceof Map ? Object.fromEntries(value) : value
  return JSON.stringify(simulated, plain, 2)
}
