/** OAuth clients as operators see them. */
import * as z from 'zod'
import { type Client, GRANT_TYPES } from '../../oauth/client.ts'
import { timeOf } from './call.ts'
import { time } from './schemas.ts'

export const clientView = () =>
  z.strictObject({
    clientId: z.uuid(),
    name: z.string(),
    grants: z.array(z.enum(GRANT_TYPES)),
    scopes: z.array(z.string()).nullable().describe('null: no bound of its own'),
    roles: z.array(z.string()),
    audiences: z.array(z.string()),
    tenant: z.string().nullable(),
    authentication: z.enum(['client_secret', 'private_key_jwt']),
    tokenFormat: z.enum(['jwt', 'opaque']),
    tokenAlgorithm: z.string().nullable().describe('null: that of the first active key'),
    accessTokenSeconds: z.int().nullable().describe("null: the policy's"),
    dpopBound: z.boolean(),
    disabled: z.boolean(),
    configured: z.boolean().describe('in CLIENTS, where alone it can be changed'),
    createdAt: time.nullable().describe('null: from CLIENTS, which does not say'),
  })

/** Returns everything but the hashes of its secrets. */
export function viewOf(client: Client): z.infer<ReturnType<typeof clientView>> {
  const { name, tokenFormat, dpopBound, disabled, configured } = client
  return {
    clientId: client.id,
    name,
    grants: [...client.grants],
    scopes: client.scopes === undefined ? null : [...client.scopes],
    roles: [...client.roles],
    audiences: [...client.audiences],
    tenant: client.tenant ?? null,
    authentication: client.jwks === undefined ? 'client_secret' : 'private_key_jwt',
    tokenFormat,
    tokenAlgorithm: client.tokenAlgorithm ?? null,
    accessTokenSeconds: client.accessTokenSeconds ?? null,
    dpopBound,
    disabled,
    configured,
    createdAt: configured ? null : timeOf(client.createdAtSeconds),
  }
}
