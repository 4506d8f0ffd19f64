/** Metadata of public clients (RFC 7591 section 2), as they publish it or register with it. */
import * as z from 'zod/mini'
import type { MetadataCheck, MetadataMember } from '../../../problems/checks.ts'
import { name } from '../../../validators/names.ts'
import { absentIfNull } from '../../../validators/schema-parts.ts'
import type { GrantType } from '../../authorization-server/client.ts'
import { PUBLIC_GRANT_TYPES } from '../../authorization-server/schemas/new-client.ts'
import { classifyRedirect } from '../../authorization-server/schemas/redirect-uri.ts'
import type { PublicClientData } from './public-client.ts'

const MAX_URIS = 50
const texts = z.array(z.string()).check(z.maxLength(MAX_URIS))

/**
 * Characters without a shape of their own: marks that change the order of the text around them, of zero
 * width, fillers, selectors and tags, and a blank that is no space. A page would show another name, or
 * two clients with one name.
 */
const INVISIBLE = /[\p{Cf}\p{Default_Ignorable_Code_Point}\p{Co}\p{Cn}\u2800\u{1D159}]/u

const visibleName = name(128).check(z.refine((text) => !INVISIBLE.test(text)))

/** Members that the gateway does not use are ignored (RFC 7591 section 2), and null ones are absent. */
const metadataSchema = z.looseObject({
  client_id: absentIfNull(z.string()),
  client_name: absentIfNull(
    z.pipe(z.string().check(z.trim()), z.union([z.literal(''), visibleName])),
  ),
  redirect_uris: texts,
  grant_types: absentIfNull(texts),
  response_types: absentIfNull(texts),
  token_endpoint_auth_method: absentIfNull(z.string()),
  dpop_bound_access_tokens: absentIfNull(z.boolean()),
  client_secret: absentIfNull(z.never()),
})

export type ClientMetadata = Omit<PublicClientData, 'id'> & {
  /** `client_id` of the metadata. */
  readonly statedId: string | undefined
  /** `token_endpoint_auth_method`. */
  readonly authentication: string | undefined
}

/**
 * Reads the metadata of a public client. `schemes` are private-use schemes that the policy permits.
 * A redirect URI that no client may have is a fault: without it, the client would fail later.
 */
export function readClientMetadata(
  metadata: unknown,
  schemes: readonly string[],
): ClientMetadata | MetadataCheck {
  const { data, error } = z.safeParse(metadataSchema, metadata)
  if (error) return (error.issues[0]?.path[0] as MetadataMember | undefined) ?? 'form'
  const { redirect_uris: uris } = data
  if (uris.length === 0 || !uris.every((uri) => classifyRedirect(uri, schemes) !== undefined))
    return 'redirect_uris'
  const grants = (data.grant_types ?? ['authorization_code']).filter(isPublicGrant)
  if (!grants.includes('authorization_code')) return 'grant_types'
  if (data.response_types?.includes('code') === false) return 'response_types'
  return {
    statedId: data.client_id,
    authentication: data.token_endpoint_auth_method,
    name: data.client_name ?? '',
    grants,
    redirectUris: uris,
    dpopBound: data.dpop_bound_access_tokens ?? false,
  }
}

const isPublicGrant = (grant: string): grant is GrantType =>
  (PUBLIC_GRANT_TYPES as readonly string[]).includes(grant)
