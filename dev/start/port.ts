/** Checks early that the gateway's port is free. */
import { createServer } from 'node:net'
import { HOST } from './settings.ts'

/** Resolves if `port` is free. Rejects with an `Error` of one line if it is not. */
export function requireFreePort(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', ({ code }: NodeJS.ErrnoException) => {
      const reason = code === 'EADDRINUSE' ? 'is already in use' : `cannot be opened (${code})`
      reject(new Error(`port ${port} on ${HOST} ${reason}; choose another with PORT`))
    })
    probe.listen(port, HOST, () => probe.close(() => resolve()))
  })
}
