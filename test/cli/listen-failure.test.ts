/** The errors of servers that cannot listen, as the system reports them. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { afterEach, expect, test } from 'vitest'
import { listenFailure } from '../../cli/listen-failure.ts'

const open: ReturnType<typeof createServer>[] = []
afterEach(() => {
  for (const server of open.splice(0)) server.close()
})

async function listening(port: number, host: string): Promise<number> {
  const server = createServer()
  open.push(server)
  server.listen(port, host)
  await once(server, 'listening')
  return (server.address() as { port: number }).port
}

const errorOf = (port: number, host: string): Promise<unknown> =>
  listening(port, host).then(
    () => undefined,
    (error) => error,
  )

test('a port that is in use is named, with what to do', async () => {
  const port = await listening(0, '127.0.0.1')
  expect(listenFailure(await errorOf(port, '127.0.0.1'))).toBe(
    `127.0.0.1:${port} is already in use; end the program that listens there, or choose another port with --port, PORT or FORWARD_AUTH_PORT (EADDRINUSE)`,
  )
})

test('an address of another machine is named', async () => {
  expect(listenFailure(await errorOf(4_000, '192.0.2.1'))).toBe(
    '192.0.2.1:4000 is no address of this machine; choose another with --host or HOST (EADDRNOTAVAIL)',
  )
})

test('a port that needs a privilege is named, in an IPv6 address too', () => {
  const error = Object.assign(new Error('x'), {
    code: 'EACCES',
    syscall: 'listen',
    address: '::1',
    port: 80,
  })
  expect(listenFailure(error)).toMatch(/^\[::1\]:80 needs a privilege .+ \(EACCES\)$/)
})

test('other errors keep their own message', () => {
  for (const error of [new Error('x'), Object.assign(new Error('x'), { code: 'EACCES' })])
    expect(listenFailure(error)).toBeUndefined()
})
