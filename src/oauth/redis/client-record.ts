/** The stored record of a client in Redis: one JSON text, validated strictly when it is read. */
import { base64url } from 'jose'
import { Unavailable } from '../../errors.ts'
import { CLIENT_PREFIX } from '../../redis/keys.ts'
import { type ConfiguredClient, clientMembers, type NewClient } from '../../validators/client.ts'
import * as z from '../../validators/zod.ts'
import type { Client } from '../client.ts'

const members = clientMembers
const seconds = z.int().check(z.minimum(0))

const recordSchema = z.strictObject({
  id: z.string(),
  name: z.string(),
  grants: members.grants,
  scopes: members.scopes,
  roles: z.array(z.string()),
  audiences: z.array(z.string()).check(z.minLength(1)),
  tenant: z.optional(z.string()),
  secrets: z.array(z.strictObject({ hash: z.string(), untilSeconds: z.nullable(seconds) })),
  jwks: members.jwks,
  tokenFormat: z.enum(['jwt', 'opaque']),
  tokenAlgorithm: members.tokenAlgorithm,
  accessTokenSeconds: members.accessTokenSeconds,
  dpopBound: z.boolean(),
  disabled: z.boolean(),
  createdAtSeconds: seconds,
  configured: z.literal(false),
})

/** Returns the key of a client's record. `id` is a UUID. */
export function clientKey(id: string): string {
  return CLIENT_PREFIX + id
}

/** Parses a record. Throws `Unavailable` for anything else, which must not count as "no client". */
export function parseClient(value: unknown): Client {
  let json: unknown
  try {
    json = JSON.parse(String(value))
  } catch {
    throw new Unavailable('redis', 'malformed')
  }
  const parsed = recordSchema.safeParse(json)
  if (!parsed.success) throw new Unavailable('redis', 'malformed')
  return completed(parsed.data)
}

/** Returns the record of a client as JSON text. */
export function clientRecord(client: Client): string {
  return JSON.stringify(client)
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
    disabled: false,
  } satisfies Partial<Client>
}

/** Returns a client of the configuration. Its time of creation is 0. */
function configuredClientOf(configured: ConfiguredClient, publicUrl: string): Client {
  const { secretSha256 } = configured
  return {
    ...describedClient(configured, configured.id, publicUrl),
    secrets:
      secretSha256 === undefined
        ? []
        : [{ hash: base64url.encode(secretSha256), untilSeconds: null }],
    createdAtSeconds: 0,
    configured: true,
  }
}

/** Returns the clients of the configuration by their ids. */
export function configuredClientsOf(
  configured: readonly ConfiguredClient[],
  publicUrl: string,
): ReadonlyMap<string, Client> {
  return new Map(configured.map((client) => [client.id, configuredClientOf(client, publicUrl)]))
}

function completed(record: z.output<typeof recordSchema>): Client {
  const { scopes, tenant, jwks, tokenAlgorithm, accessTokenSeconds } = record
  return { ...record, scopes, tenant, jwks, tokenAlgorithm, accessTokenSeconds }
}
