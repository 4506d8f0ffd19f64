/** API keys as operators see them: the bodies of their calls, the stored record and the port. */

import * as z from 'zod/mini'
import { name, roleNames, scopeNames } from '../../validators/names.ts'
import { createdMembers } from '../../validators/owner.ts'
import type { Page, PageQuery } from '../../validators/page.ts'
import { integer, wholeNumber } from '../../validators/schema-parts.ts'

const MAX_API_KEY_SECONDS = 10 * 365 * 86_400
const MAX_METADATA = 16
/** A name of an entry: safe as a column of a table and as a word of a command line. */
const METADATA_NAME = /^[a-z][a-z0-9_.-]{0,39}$/i

/** What operators note about a key. The gateway does not use it, and the origin does not get it. */
const metadata = z
  .record(z.string().check(z.regex(METADATA_NAME)), name(256), {
    error: ({ code }) =>
      code === 'invalid_key' ? 'must be a name such as team or cost-center' : undefined,
  })
  .check(
    z.refine(
      (entries) => Object.keys(entries).length <= MAX_METADATA,
      `must have at most ${MAX_METADATA} entries`,
    ),
  )

const keyName = name(128)

/** The body of `POST /-/admin/api-keys`. */
export const newApiKeySchema = z.strictObject({
  name: keyName,
  /** The gateway vouches for this subject. */
  subject: name(255),
  roles: z.optional(roleNames),
  scopes: z.optional(scopeNames),
  tenant: z.optional(name(256)),
  /** Absent: the key lives until an operator ends it. */
  expiresInSeconds: z.optional(wholeNumber(1, MAX_API_KEY_SECONDS)),
  metadata: z.optional(metadata),
})

/** A replaced secret that is still valid. */
const oldSecretSchema = z.strictObject({
  tokenId: z.uuid(),
  hash: z.string(),
  issuedAtSeconds: integer(),
  untilSeconds: integer(),
})

export type OldSecret = z.infer<typeof oldSecretSchema>

/** The stored record of a key. It never contains the key. Times are seconds since the epoch. */
export const apiKeySchema = z.strictObject({
  /** UUIDv7. A rotation does not change it. */
  id: z.uuid(),
  name: z.string(),
  subject: z.string(),
  roles: z.array(z.string()),
  scopes: z.array(z.string()),
  tenant: z.nullable(z.string()),
  /** `Principal.tokenId` of requests with the present key. Each rotation changes it. */
  tokenId: z.uuid(),
  /** base64url SHA-256 of the present key. */
  hash: z.string(),
  /** The first characters of the present key. Absent in records of earlier versions. */
  prefix: z.optional(z.string()),
  ...createdMembers,
  /** When the present key was created. */
  rotatedAtSeconds: integer(),
  expiresAtSeconds: z.nullable(integer()),
  /** Newest first. Absent: none. */
  oldSecrets: z.optional(z.array(oldSecretSchema)),
  /** Absent: none. */
  metadata: z.optional(z.record(z.string(), z.string())),
  /** The number of changes of the record, apart from rotations. Absent: none. */
  revision: z.optional(integer()),
  /** When an operator ended the key, and which one. Such a key is never valid again. */
  revokedAtSeconds: z.optional(integer()),
  revokedBy: z.optional(z.string()),
  /** The plan that the key had when it was revoked. The plan of another key is stored elsewhere. */
  plan: z.optional(z.string()),
})

export type ApiKey = z.infer<typeof apiKeySchema>

export const API_KEY_STATUSES = ['active', 'expired', 'revoked'] as const
export type ApiKeyStatus = (typeof API_KEY_STATUSES)[number]

/** Returns the status of a key. Does NOT check revocations of its subject, tenant or token id. */
export function statusOf(
  { revokedAtSeconds, expiresAtSeconds }: Pick<ApiKey, 'revokedAtSeconds' | 'expiresAtSeconds'>,
  nowSeconds: number,
): ApiKeyStatus {
  if (revokedAtSeconds !== undefined) return 'revoked'
  return expiresAtSeconds !== null && nowSeconds >= expiresAtSeconds ? 'expired' : 'active'
}

/** The entry of `metadata` that names the customer of a key, such as the number of a contract. */
export const REFERENCE = 'reference'

/** A key as operators see it. */
export interface ListedApiKey extends ApiKey {
  /** A second in the five minutes before the last use. Null: no use in the last 400 days. */
  readonly lastUsedAtSeconds: number | null
}

/** A key with its secret, which is shown once. */
export interface IssuedApiKey {
  readonly key: ApiKey
  readonly secret: string
}

/**
 * An isolate caches a secret for up to five minutes with the expiry that it had then. So a secret
 * cannot expire earlier, unless it is revoked.
 */
export const MIN_GRACE_SECONDS = 300

/** The members of a change of a key. An absent member stays as it is. */
export const apiKeyChangeMembers = {
  name: z.optional(keyName),
  /** Replaces all entries. */
  metadata: z.optional(metadata),
  /** From now on. Null: the key lives until an operator ends it. */
  expiresInSeconds: z.optional(z.nullable(wholeNumber(MIN_GRACE_SECONDS, MAX_API_KEY_SECONDS))),
}

type ApiKeyChange = z.infer<z.ZodMiniObject<typeof apiKeyChangeMembers>>

export interface EndOptions {
  /** The operator. */
  readonly by?: string
  /** The plan of the key. Default: none of its own. */
  readonly plan?: string | undefined
}

export interface RotateOptions {
  /** Default 0: the old secrets end at once. */
  readonly graceSeconds?: number
  /** The second that revocation cutoffs are compared with. Default: now. */
  readonly issuedAtSeconds?: number | undefined
}

/** Keys with these values. An absent member matches every key. */
export interface ApiKeyFilter {
  readonly tenant?: string | undefined
  readonly subject?: string | undefined
  readonly status?: ApiKeyStatus | undefined
  /** The value of the entry {@link REFERENCE} of the metadata. */
  readonly reference?: string | undefined
  /** As in {@link ListFilter}. */
  readonly hidesOthers?: boolean
}

/**
 * Port: the API keys. Keys that have ended are listed until the end of their retention; apart from
 * `find` and `list`, they do not exist. Throws `Unavailable` if the store cannot read or write.
 */
export interface ApiKeys {
  /**
   * `issuedAtSeconds` is the second that revocation cutoffs are compared with. Default: now. `createdByName` is
   * the name of the person who creates it. Default: none.
   */
  create(
    key: z.infer<typeof newApiKeySchema>,
    createdBy: string,
    issuedAtSeconds?: number,
    createdByName?: string,
  ): Promise<IssuedApiKey>
  find(id: string): Promise<ListedApiKey | undefined>
  /**
   * Returns the key that a secret belongs to, and whether the secret is its present one. Returns undefined
   * for a secret that is not valid.
   */
  identify(
    secret: string,
  ): Promise<{ readonly key: ListedApiKey; readonly isPresent: boolean } | undefined>
  /** A filtered page may have fewer keys than its limit, and a cursor. */
  list(page: PageQuery, filter?: ApiKeyFilter): Promise<Page<ListedApiKey>>
  /**
   * Changes a key in every isolate, within five minutes. Returns undefined if the key does not exist.
   * Throws as `rotate`.
   */
  update(id: string, change: ApiKeyChange): Promise<ListedApiKey | undefined>
  /**
   * Replaces the secret. The old ones stay valid for `graceSeconds`, which must be 0 or at least
   * {@link MIN_GRACE_SECONDS}. Returns undefined if the key does not exist. Throws `Denied`
   * (`conflict`) if other requests keep changing it; `end` does so too.
   */
  rotate(id: string, options?: RotateOptions): Promise<IssuedApiKey | undefined>
  /**
   * Ends a key with all its secrets in every isolate from the next request on. False: the key does
   * not exist.
   */
  end(id: string, options?: EndOptions): Promise<boolean>
}
