/** Public clients that operators have not registered: their data as a `Client`. */
import type { Client, GrantType } from '../../authorization-server/client.ts'

export interface PublicClientData {
  readonly id: string
  readonly name: string
  readonly grants: readonly GrantType[]
  readonly redirectUris: readonly string[]
  readonly dpopBound?: boolean
  readonly createdAtSeconds?: number
}

/** Returns the client. It may act for any user, with any scope that the user allows. */
export function publicClient(data: PublicClientData, publicUrl: string): Client {
  const { id, name, grants, redirectUris, dpopBound = false, createdAtSeconds = 0 } = data
  return {
    id,
    name,
    grants: [...grants],
    scopes: undefined,
    roles: [],
    audiences: [publicUrl],
    secrets: [],
    redirectUris: [...redirectUris],
    public: true,
    tokenFormat: 'jwt',
    dpopBound,
    disabled: false,
    createdAtSeconds,
    configured: false,
  }
}
