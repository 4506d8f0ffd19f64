/** The scopes of the clients in the environment. */
import { jsonIn } from '../json.ts'

/** Returns the scopes that clients in `CLIENTS` of the shell may request. A malformed list has none. */
export function scopesOfClients(clients: string | undefined): readonly string[] {
  return [jsonIn(clients ?? '')].flat().flatMap((entry) => {
    const { scopes } = Object(entry) as { readonly scopes?: unknown }
    return [scopes].flat().filter((scope) => typeof scope === 'string')
  })
}
