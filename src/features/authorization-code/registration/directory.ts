/** Finds the client of an authorization request: registered by operators, by itself, or described. */
import type { DocumentCheck } from '../../../problems/checks.ts'
import type { Client } from '../../authorization-server/client.ts'
import type { PublicClients } from '../../authorization-server/options.ts'
import type { ClientDocuments } from './client-documents.ts'
import { isDocumentUrl } from './document-url.ts'
import type { RegisteredClients } from './registered-clients.ts'

/** Who vouches for what the consent page says about a client. */
export type ClientOrigin = 'operator' | 'document' | 'itself'

export interface FoundClient {
  readonly client: Client
  readonly origin: ClientOrigin
}

/** `unread`: the client's document is not cached, and the caller may not have it fetched. */
export type ClientSearch =
  | FoundClient
  | { readonly missing: 'unread' }
  | { readonly missing: 'unknown' | 'disabled' | `document_${DocumentCheck}` }

export interface DirectoryOptions {
  readonly registry: PublicClients
  /** Undefined: clients cannot register themselves. */
  readonly registered: RegisteredClients | undefined
  /** Undefined: clients cannot be described by documents. */
  readonly documents: ClientDocuments | undefined
}

export function createClientDirectory({ registry, registered, documents }: DirectoryOptions) {
  return {
    /**
     * Returns the client, or why there is none. With `mayFetch`, a document that is not cached is
     * fetched: the caller has limited how often.
     */
    async find(id: string, { mayFetch }: { readonly mayFetch: boolean }): Promise<ClientSearch> {
      if (isDocumentUrl(id)) {
        if (documents === undefined) return { missing: 'unknown' }
        const described = mayFetch ? await documents.read(id) : documents.recall(id)
        if (described === undefined) return { missing: 'unread' }
        return 'fault' in described
          ? { missing: `document_${described.fault}` }
          : { client: described.client, origin: 'document' }
      }
      const byOperator = await registry.find(id)
      const client = byOperator ?? (await registered?.find(id))
      if (client === undefined) return { missing: 'unknown' }
      if (client.disabled) return { missing: 'disabled' }
      return { client, origin: byOperator === undefined ? 'itself' : 'operator' }
    },
  }
}

export type ClientDirectory = ReturnType<typeof createClientDirectory>

/** Creates the public clients of the token endpoint, which calls no client. */
export function createPublicClients({
  registered,
  documents,
}: Pick<DirectoryOptions, 'registered' | 'documents'>): PublicClients {
  return {
    find: async (id) => (isDocumentUrl(id) ? documents?.identified(id) : registered?.find(id)),
  }
}
