/** Says why a server cannot listen, and what to do. */

const OTHER_PORT = 'choose another port with --port, PORT or FORWARD_AUTH_PORT'

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: `is already in use; end the program that listens there, or ${OTHER_PORT}`,
  EACCES: `needs a privilege that this user does not have; ${OTHER_PORT}`,
  EADDRNOTAVAIL: 'is no address of this machine; choose another with --host or HOST',
}

/** Returns a sentence for an error of `listen`. Undefined for other errors. */
export function listenFailure(error: unknown): string | undefined {
  const {
    code = '',
    syscall,
    address,
    port,
  } = error as NodeJS.ErrnoException & {
    readonly address?: string
    readonly port?: number
  }
  const reason = REASONS[code]
  if (reason === undefined || syscall !== 'listen') return undefined
  if (address === undefined || port === undefined) return undefined
  const host = address.includes(':') ? `[${address}]` : address
  return `${host}:${port} ${reason} (${code})`
}
