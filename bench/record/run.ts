/** `npm run record`: runs four gateways with faults, records a history, and checks it. */
import { runProgram } from '../main.ts'
import { type RecordOptions, readOptions, USAGE } from './options.ts'
import { record } from './record.ts'
import { report, writeHistory, writeResult } from './result.ts'

await runProgram<RecordOptions>({
  name: 'record',
  command: 'npm run record',
  usage: USAGE,
  readOptions,
  async run(options, context) {
    const { result, events } = await record(options, context)
    console.log(`\n${report(result)}\n`)
    context.progress(`written to ${writeResult(options.results, result)}`)
    if (options.history !== undefined) writeHistory(options.history, events)
    return result.holds ? 0 : 1
  },
})
