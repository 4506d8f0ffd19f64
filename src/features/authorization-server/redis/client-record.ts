/** The stored record of a client in Redis: one JSON text, validated strictly when it is read. */
import { base64url } from 'jose'
import * as z from 'zod/mini'
import { recordIn } from '../../../redis/reply.ts'
import { extended } from '../../../validators/schema-parts.ts'
import { type Client, clientSchema } from '../client.ts'
import type { ConfiguredClient } from '../schemas/client.ts'
import type { NewClient } from '../schemas/new-client.ts'

/** A client of the configuration is never stored. */
const recordSchema = extended(clientSchema, { configured: z.literal(false) })

/** Parses a record. Throws `Unavailable` for any other value. */
export function parseClient(value: unknown): Client {
  return recordIn(value, recordSchema)
}

type Described = Omit<NewClient, 'name'> & { readonly name?: string | undefined }

/** Returns a client's data from its description, with defaults. */
export function describedClient(described: Described, id: string, publicUrl: string) {
  return {
    id,
    name: described.name ?? id,
    grants: described.grants,
    scopes: described.scopes,
    roles: described.roles ?? [],
    audiences: described.audiences ?? [publicUrl],
    tenant: described.tenant,
    jwks: described.jwks,
    tokenFormat: described.tokenFormat ?? 'jwt',
    tokenAlgorithm: described.tokenAlgorithm,
    accessTokenSeconds: described.accessTokenSeconds,
    dpopBound: described.dpopBound ?? false,
    profile: described.profile,
    redirectUris: described.redirectUris,
    public: described.public,
    disabled: false,
  } satisfies Partial<Client>
}

function createConfiguredClient(configured: ConfiguredClient, publicUrl: string): Client {
  const { id, secretSha256: hash } = configured
  return {
    ...describedClient(configured, id, publicUrl),
    secrets: hash === undefined ? [] : [{ hash: base64url.encode(hash), untilSeconds: null }],
    createdAtSeconds: 0,
    configured: true,
  }
}

/** Returns the clients of the configuration by their ids. */
export function createConfiguredClients(
  configured: readonly ConfiguredClient[],
  publicUrl: string,
): ReadonlyMap<string, Client> {
  return new Map(configured.map((client) => [client.id, createConfiguredClient(client, publicUrl)]))
}
