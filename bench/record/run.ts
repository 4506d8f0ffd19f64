/** `npm run record`: runs four gateways with faults, records a history, and checks it. */
import { createShutdown } from '../../dev/start/shutdown.ts'
import { type RecordOptions, readOptions, USAGE } from './options.ts'
import { record } from './record.ts'
import { report, writeHistory, writeResult } from './result.ts'

function optionsOrExit(argv: readonly string[]): RecordOptions | 'help' {
  try {
    return readOptions(argv)
  } catch (error) {
    const [problem] = (error as Error).message.split('\n')
    console.error(`record: ${problem}\nSee: npm run record -- --help`)
    process.exit(2)
  }
}

function progress(what: string): void {
  console.error(`record: ${what}`)
}

const argv = process.argv.slice(2)
const options = optionsOrExit(argv)
if (options === 'help') {
  console.log(USAGE)
} else {
  const shutdown = createShutdown(1)
  try {
    const { result, events } = await record(options, { argv, shutdown, progress })
    console.log(`\n${report(result)}\n`)
    progress(`written to ${writeResult(options.results, result)}`)
    if (options.history !== undefined) writeHistory(options.history, events)
    await shutdown.exit(result.holds ? 0 : 1)
  } catch (error) {
    if (!shutdown.signal.aborted) console.error(`record: ${(error as Error).message}`)
    await shutdown.exit(1)
  }
}
