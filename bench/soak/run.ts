/** `npm run soak`: runs mixed traffic with changing faults. */
import { createShutdown } from '../../dev/start/shutdown.ts'
import { defaultFile } from './about.ts'
import { allHold } from './invariants.ts'
import { readOptions, type SoakOptions, USAGE } from './options.ts'
import { report, writeResult } from './result.ts'
import { soak } from './soak.ts'

function optionsOrExit(argv: readonly string[]): SoakOptions | 'help' {
  try {
    return readOptions(argv)
  } catch (error) {
    const [problem] = (error as Error).message.split('\n')
    console.error(`soak: ${problem}\nSee: npm run soak -- --help`)
    process.exit(2)
  }
}

function progress(what: string): void {
  console.error(`soak: ${what}`)
}

const argv = process.argv.slice(2)
const options = optionsOrExit(argv)
if (options === 'help') {
  console.log(USAGE)
} else {
  const shutdown = createShutdown(1)
  try {
    const result = await soak(options, { argv, shutdown, progress })
    console.log(`\n${report(result)}\n`)
    for (const file of writeResult(options.out ?? defaultFile(result.date), result))
      progress(`written to ${file}`)
    await shutdown.exit(allHold(result.invariants) ? 0 : 1)
  } catch (error) {
    if (!shutdown.signal.aborted) console.error(`soak: ${(error as Error).message}`)
    await shutdown.exit(1)
  }
}
