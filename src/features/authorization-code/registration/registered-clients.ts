/** Clients that have registered themselves (RFC 7591), and the port of the store. */
import type { Client } from '../../authorization-server/client.ts'

const REGISTERED_ID = /^dyn_[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/

/** Their ids have another form than those of other clients. */
export const newRegisteredId = (): string => `dyn_${crypto.randomUUID()}`

export const isRegisteredId = (id: string): boolean => REGISTERED_ID.test(id)

/** Port: the clients. Throws `Unavailable` if the store cannot read or write. */
export interface RegisteredClients {
  put(client: Client, ttlSeconds: number): Promise<void>
  find(id: string): Promise<Client | undefined>
  /** Sets the time after which the store forgets the client. */
  keep(id: string, ttlSeconds: number): Promise<void>
}
