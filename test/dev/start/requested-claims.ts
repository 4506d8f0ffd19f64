/** A token with every claim that a command can set. */

export const ALL_FLAGS = [
  ...['--sub', 'alice', '--role', 'reader', '--role', 'writer', '--scope', 'a b'],
  ...['--client', 'shop', '--tenant', 'acme', '--sid', 's1', '--jti', 'j1', '--ttl', '15m'],
] as const

/** The claims of these flags, without those that the command determines itself. */
export const ALL_CLAIMS = {
  sub: 'alice',
  roles: ['reader', 'writer'],
  scope: 'a b',
  client_id: 'shop',
  tenant: 'acme',
  sid: 's1',
  jti: 'j1',
}
/** `--ttl` of these flags. */
export const ALL_SECONDS = 900
