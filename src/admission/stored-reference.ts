/** How the record of a reference is stored: with all that names its keys, ready for a script. */
import * as z from 'zod'
import { Unavailable } from '../errors.ts'
import { type ReferenceRecord, referenceRecordSchema } from '../tokens/reference.ts'
import { tokenIdHash } from '../tokens/token-id.ts'
import { keyPart } from './key.ts'

/**
 * Parts of the storage keys that decide over the record's principal (`keyPart` of each name, and
 * the token's `tokenIdHash`). A script cannot make them itself: Redis has no SHA-256.
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

/** The text to store for a record, at `referenceKey(hash)`: JSON of `{ record, parts }`. */
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
 * The record in a stored text. Throws `Unavailable` for anything that {@link storedReference} did
 * not make.
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
