/**
 * Runs a gateway on Node whose token caches are full before the clock starts: `node bench/memory/full-caches.ts [minutes]
 * [tokens]`. By default there are twice as many tokens as the caches have room for. Prints resident memory each 15 seconds, the
 * difference between the last and the first third, and the heap that is used after a full collection. The gateway runs from its
 * source: the built package needs 50 MB less, because Node does not remove types from it.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createShutdown } from '../../dev/start/shutdown.ts'
import { sendClosed } from '../load/closed.ts'
import { read } from '../load/questions.ts'
import { oursWith, startOnNode } from '../node/contestants.ts'
import { residentBytesOf } from '../processes/proc.ts'
import { mintTokens } from '../stack/credentials.ts'
import { startGround } from '../stack/gateway.ts'
import type { HeapReport } from './report-heap.ts'

const [minutes = 5, tokens = 24_000] = process.argv.slice(2).map(Number)
const CONNECTIONS = 32
const WINDOW_SECONDS = 15
const WINDOWS_PER_MINUTE = 4
const BYTES_PER_MEGABYTE = 1_000_000
const THIRDS = 3
const POLL_MS = 50
const REPORT_TIMEOUT_MS = 10_000

const shutdown = createShutdown(1)
const directory = mkdtempSync(join(tmpdir(), 'portcullis-memory-'))
shutdown.defer(async () => rmSync(directory, { recursive: true }))
const onProgress = (what: string) => console.error(what)
const ground = await startGround({ shutdown })
const context = { directory, shutdown, onProgress }
const HEAP_REPORT = join(directory, 'heap.json')
const { url, pid } = await startOnNode(context, oursWith('full-caches', tokens, { HEAP_REPORT }), {
  ground,
  tokens: await mintTokens(ground),
  flags: ['--expose-gc', '--import', join(import.meta.dirname, 'report-heap.ts')],
})
const resident = () => (residentBytesOf(pid) ?? 0) / BYTES_PER_MEGABYTE
const show = (megabytes: number) => `${megabytes.toFixed(0)} MB`

/** Prints the heap of the gateway before and after a full collection. */
async function showHeap(): Promise<void> {
  rmSync(HEAP_REPORT, { force: true })
  process.kill(pid, 'SIGUSR2')
  const end = Date.now() + REPORT_TIMEOUT_MS
  while (!existsSync(HEAP_REPORT)) {
    if (Date.now() > end) throw new Error('the gateway does not report its heap')
    await sleep(POLL_MS)
  }
  const { before, after } = JSON.parse(readFileSync(HEAP_REPORT, 'utf8')) as HeapReport
  const [used, live] = [before.heapUsed, after.heapUsed].map((n) => show(n / BYTES_PER_MEGABYTE))
  console.log(`heap used: ${used}, after a collection: ${live}`)
}

console.log(`at the start: ${show(resident())}`)
await showHeap()
onProgress(`signing ${tokens} tokens`)
const minted = await ground.mint(Math.ceil(tokens / CONNECTIONS) * CONNECTIONS)
const questions = minted.map(({ credential }) => read(credential))
const load = { url, questions, connections: CONNECTIONS, mayShed: true }
await sendClosed({ ...load, until: 'once' })
console.log(`each token sent once: ${show(resident())}`)

const samples: number[] = []
for (let window = 1; window <= minutes * WINDOWS_PER_MINUTE; window += 1) {
  const { right, shed, seconds } = await sendClosed({ ...load, until: { seconds: WINDOW_SECONDS } })
  samples.push(resident())
  console.log(
    `${window * WINDOW_SECONDS} s: ${show(samples.at(-1) ?? 0)}, ${Math.round(right / seconds)} requests/s, ${shed} shed`,
  )
}
const third = Math.max(1, Math.floor(samples.length / THIRDS))
const mean = (some: readonly number[]) => some.reduce((sum, one) => sum + one, 0) / some.length
const [first, last] = [mean(samples.slice(0, third)), mean(samples.slice(-third))]
console.log(
  `most: ${show(Math.max(...samples))}; last third minus first third: ${show(last - first)}`,
)
await showHeap()
await shutdown.exit(0)
