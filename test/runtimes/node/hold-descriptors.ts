/** Preloaded into a gateway: after SIGUSR2 it holds each free file descriptor, and after the next one none. */
import { closeSync, openSync } from 'node:fs'
import { devNull } from 'node:os'

const held: number[] = []

function holdAll(): void {
  try {
    for (;;) held.push(openSync(devNull, 'r'))
  } catch {
    console.log(`holds ${held.length} descriptors`)
  }
}

process.on('SIGUSR2', () => {
  if (held.length === 0) return holdAll()
  for (const descriptor of held.splice(0)) closeSync(descriptor)
  console.log('holds no descriptor')
})
