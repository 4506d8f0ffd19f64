/** `npm run soak`: runs mixed traffic with changing faults. */
import { join } from 'node:path'
import { runProgram } from '../main.ts'
import { allHold } from './invariants.ts'
import { readOptions, type SoakOptions, USAGE } from './options.ts'
import { report, writeResult } from './result.ts'
import { soak } from './soak.ts'

const RESULTS = join(import.meta.dirname, '..', 'results')

await runProgram<SoakOptions>({
  name: 'soak',
  command: 'npm run soak',
  usage: USAGE,
  readOptions,
  async run(options, context) {
    const result = await soak(options, context)
    console.log(`\n${report(result)}\n`)
    const day = result.date.slice(0, 'yyyy-mm-dd'.length)
    const file =
      options.out ?? join(RESULTS, `${day}-soak${options.runtime === 'node' ? '-node' : ''}.json`)
    writeResult(file, result)
    context.progress(`written to ${file}`)
    return allHold(result.invariants) ? 0 : 1
  },
})
