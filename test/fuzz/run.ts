/** `npm run fuzz:transport`: requests whose client or origin breaks off. */
import { runProgram } from '../../bench/main.ts'
import { fuzz } from './fuzz.ts'
import { readOptions, type TransportOptions, USAGE } from './options.ts'

await runProgram<TransportOptions>({
  name: 'fuzz:transport',
  command: 'npm run fuzz:transport',
  usage: USAGE,
  readOptions,
  async run(options, { shutdown, progress }) {
    const { signal } = shutdown
    const result = await fuzz({ ...options, signal, onProgress: progress })
    const { cases, controls, statuses, wrong, seconds } = result
    console.log(JSON.stringify({ ...options, cases, controls, seconds, statuses }))
    for (const each of wrong) console.log(`wrong: ${each}`)
    console.log(wrong.length === 0 ? 'nothing was wrong' : `${wrong.length} or more were wrong`)
    return wrong.length === 0 ? 0 : 1
  },
})
