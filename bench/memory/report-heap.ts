/**
 * Loaded into a gateway with `--expose-gc --import`: on SIGUSR2 it writes its memory before and after a full
 * collection to the file of `HEAP_REPORT`.
 */
import { renameSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

export interface HeapReport {
  readonly before: NodeJS.MemoryUsage
  readonly after: NodeJS.MemoryUsage
}

/** Objects of Web Crypto are released by tasks that run after a collection. */
const BETWEEN_MS = 100
const { HEAP_REPORT = '' } = process.env

process.on('SIGUSR2', async () => {
  const before = process.memoryUsage()
  globalThis.gc?.()
  await sleep(BETWEEN_MS)
  globalThis.gc?.()
  const report: HeapReport = { before, after: process.memoryUsage() }
  writeFileSync(`${HEAP_REPORT}.part`, JSON.stringify(report))
  renameSync(`${HEAP_REPORT}.part`, HEAP_REPORT)
})
