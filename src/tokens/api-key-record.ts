/**
 * API keys that operators create: the request body, the stored record and the port of the store.
 */
import * as z from 'zod'
import { name, roleNames, scopeNames } from '../validators/operator-names.ts'
import type { Page, PageQuery } from '../validators/page.ts'

/** Ten years. */
const MAX_API_KEY_SECONDS = 315_360_000

/** The body of `POST /-/admin/api-keys`. */
export const newApiKeySchema = z.strictObject({
  name: name(128),
  /**
   * The subject that requests with this key count for. Unique within the gateway, which vouches for
   * it.
   */
  subject: name(255),
  roles: roleNames.optional(),
  scopes: scopeNames.optional(),
  tenant: name(256).optional(),
  /** Absent: the key lives until an operator ends it. */
  expiresInSeconds: z.int().min(1).max(MAX_API_KEY_SECONDS).optional(),
})

type NewApiKey = z.infer<typeof newApiKeySchema>

/** The stored record of a key. It never contains the key. Times are seconds since the epoch. */
export const apiKeySchema = z.strictObject({
  /** UUIDv7. A rotation does not change it. */
  id: z.uuid(),
  name: z.string(),
  subject: z.string(),
  roles: z.array(z.string()),
  scopes: z.array(z.string()),
  tenant: z.string().nullable(),
  /** `Principal.tokenId` of requests with the present key. Each rotation changes it. */
  tokenId: z.uuid(),
  /** base64url SHA-256 of the present key. Its record as a reference is stored under this hash. */
  hash: z.string(),
  createdAtSeconds: z.int(),
  createdBy: z.string(),
  /** When the present key was created. */
  rotatedAtSeconds: z.int(),
  expiresAtSeconds: z.int().nullable(),
})

export type ApiKey = z.infer<typeof apiKeySchema>

/** A key with its secret, which is shown once. */
export interface IssuedApiKey {
  readonly key: ApiKey
  readonly secret: string
}

/** Port: the API keys. Throws `Unavailable` if the store cannot read or write. */
export interface ApiKeys {
  /**
   * Creates a key. It is valid in every isolate from the next request on. `issuedAtSeconds` is the
   * second that revocation cutoffs are compared with. Default: now.
   */
  create(key: NewApiKey, createdBy: string, issuedAtSeconds?: number): Promise<IssuedApiKey>
  /** Returns undefined if the key does not exist. */
  find(id: string): Promise<ApiKey | undefined>
  list(page: PageQuery): Promise<Page<ApiKey>>
  /**
   * Replaces the secret. The old secret ends with this call. Returns undefined if the key does not
   * exist.
   */
  rotate(id: string, issuedAtSeconds?: number): Promise<IssuedApiKey | undefined>
  /**
   * Ends a key in every isolate from the next request on. Returns false if the key does not exist.
   */
  end(id: string): Promise<boolean>
}
