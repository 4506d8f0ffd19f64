/** The description of a client as an operator gives it, and what only some clients may have. */
import * as z from 'zod/mini'
import { superRefine } from '../../../validators/checks.ts'
import { clientMembers, type GRANT_TYPES, profileAgreement } from './client.ts'
import { classifyRedirect, redirectUriMessage, schemeOf } from './redirect-uri.ts'

type GrantName = (typeof GRANT_TYPES)[number]

/** Grant types that need no proof of the client's identity besides a code or a refresh token. */
export const PUBLIC_GRANT_TYPES: readonly GrantName[] = ['authorization_code', 'refresh_token']

interface Described {
  readonly grants: readonly GrantName[]
  readonly redirectUris?: readonly string[] | undefined
  readonly public?: boolean | undefined
  readonly jwks?: unknown
  readonly secretSha256?: unknown
}

/** Checks the members for `/oauth/authorize`. Operators may permit any private scheme. */
export const clientAgreement = superRefine<Described>((client, context) => {
  const add = (path: PropertyKey[], message: string) =>
    context.addIssue({ code: 'custom', path, message })
  const { grants, redirectUris } = client
  if (grants.includes('authorization_code') !== (redirectUris !== undefined))
    add(['redirectUris'], 'belongs to the grant authorization_code: give both or none')
  for (const [index, uri] of (redirectUris ?? []).entries())
    if (classifyRedirect(uri, schemeOf(uri)) === undefined)
      add(['redirectUris', index], redirectUriMessage)
  if (client.public !== true) return
  if (!grants.every((grant) => PUBLIC_GRANT_TYPES.includes(grant)))
    add(['grants'], `of a public client may only be ${PUBLIC_GRANT_TYPES.join(' and ')}`)
  if (client.jwks !== undefined || client.secretSha256 !== undefined)
    add(['public'], 'a public client has no secret and no keys')
})

/** The body of `POST /-/admin/clients`. */
export const newClientSchema = z
  .strictObject(clientMembers)
  .check(clientAgreement, profileAgreement)
export type NewClient = z.infer<typeof newClientSchema>
