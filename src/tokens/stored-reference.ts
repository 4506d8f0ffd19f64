/** The stored form of a reference's record, with the parts of storage keys that scripts need. */
import * as z from 'zod'
import { Unavailable } from '../errors.ts'
import { tokenIdHash } from '../identity/token-id.ts'
import { keyPart } from '../redis/key-part.ts'
import { type ReferenceRecord, referenceRecordSchema } from './reference.ts'

/**
 * Parts of the storage keys that decide about the record's principal: `keyPart` of each name, and
 * the token's `tokenIdHash`. A script cannot compute them, because Redis has no SHA-256.
 */
const partsSchema = z.strictObject({
  token: z.string(),
  issuer: z.string(),
  tokenIssuer: z.string(),
  subject: z.string(),
  client: z.string().optional(),
  tenant: z.string().optional(),
  session: z.string().optional(),
})

const storedSchema = z.strictObject({ record: referenceRecordSchema, parts: partsSchema })

/** Returns the text to store for a record at `referenceKey(hash)`: JSON of `{ record, parts }`. */
export async function storedReference(record: ReferenceRecord): Promise<string> {
  const { tokenIssuer, issuer, subject, client, tenant, session } = record
  const part = async (text: string | undefined) => text && (await keyPart(text))
  const parts = {
    token: await tokenIdHash(tokenIssuer, record.tokenId),
    issuer: await keyPart(issuer),
    tokenIssuer: await keyPart(tokenIssuer),
    subject: await keyPart(subject),
    client: await part(client),
    tenant: await part(tenant),
    session: await part(session),
  }
  return JSON.stringify({ record, parts })
}

/**
 * Parses the record in a stored text. Throws `Unavailable` if the text does not have the format of
 * {@link storedReference}.
 */
export function parseStoredReference(text: unknown): ReferenceRecord {
  const parsed = storedSchema.safeParse(jsonOf(text))
  if (parsed.success) return parsed.data.record
  throw new Unavailable('redis', 'malformed')
}

function jsonOf(text: unknown): unknown {
  try {
    return typeof text === 'string' ? JSON.parse(text) : undefined
  } catch {
    return undefined
  }
}
