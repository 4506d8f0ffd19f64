/** API keys that operators hand out. */
import * as z from 'zod'
import { name, roleNames, scopeNames } from './names.ts'
import type { Page, PageQuery } from './page.ts'

/** Ten years. */
const MAX_API_KEY_SECONDS = 315_360_000

/** The body of `POST /-/admin/api-keys`. */
export const newApiKeySchema = z.strictObject({
  name: name(128),
  /** Whom its requests count for; unique within the gateway, which vouches for it. */
  subject: name(255),
  roles: roleNames.optional(),
  scopes: scopeNames.optional(),
  tenant: name(256).optional(),
  /** Absent: until an operator ends it. */
  expiresInSeconds: z.int().min(1).max(MAX_API_KEY_SECONDS).optional(),
})

type NewApiKey = z.infer<typeof newApiKeySchema>

/** What is kept of a key: never the key. Times are seconds since the epoch. */
export const apiKeySchema = z.strictObject({
  /** UUIDv7; stays when the key is rotated. */
  id: z.uuid(),
  name: z.string(),
  subject: z.string(),
  roles: z.array(z.string()),
  scopes: z.array(z.string()),
  tenant: z.string().nullable(),
  /** `Principal.tokenId` of requests with the present key; another after each rotation. */
  tokenId: z.uuid(),
  /** base64url SHA-256 of the present key: what its record as a reference is stored under. */
  hash: z.string(),
  createdAtSeconds: z.int(),
  createdBy: z.string(),
  /** When the present key was made. */
  rotatedAtSeconds: z.int(),
  expiresAtSeconds: z.int().nullable(),
})

export type ApiKey = z.infer<typeof apiKeySchema>

/** A key with its secret, which is shown once. */
export interface IssuedApiKey {
  readonly key: ApiKey
  readonly secret: string
}

/** Port: the API keys. Throws `Unavailable` for what it cannot tell or do. */
export interface ApiKeys {
  /**
   * Good in every isolate from the next request on. `issuedAtSeconds`: the second that cut-offs know it
   * by; default: now.
   */
  create(key: NewApiKey, createdBy: string, issuedAtSeconds?: number): Promise<IssuedApiKey>
  /** Undefined: no such key. */
  find(id: string): Promise<ApiKey | undefined>
  list(page: PageQuery): Promise<Page<ApiKey>>
  /** Another secret; the old one ends with this call. Undefined: no such key. */
  rotate(id: string, issuedAtSeconds?: number): Promise<IssuedApiKey | undefined>
  /** Ends a key in every isolate from the next request on. False: no such key. */
  end(id: string): Promise<boolean>
}
