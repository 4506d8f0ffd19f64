/** API keys as operators see them. */
import * as z from 'zod/mini'
import {
  API_KEY_STATUSES,
  type ListedApiKey,
  statusOf,
} from '../../access/tokens/api-key-record.ts'
import { createdBy, createdByName, time, timeOf, timeOrNull } from '../../routes/admin/input.ts'
import { describe } from '../../validators/checks.ts'
import { extended } from '../../validators/schema-parts.ts'

const apiKeyView = () =>
  z.strictObject({
    id: z.uuid(),
    name: z.string(),
    subject: z.string(),
    roles: z.array(z.string()),
    scopes: z.array(z.string()),
    tenant: z.nullable(z.string()),
    prefix: z
      .nullable(z.string())
      .check(describe('the first characters of the key; null: unknown until it is rotated')),
    tokenId: z.uuid().check(describe('identifies the current key in audit events and revocations')),
    createdAt: time,
    createdBy,
    createdByName,
    rotatedAt: time,
    expiresAt: z.nullable(time).check(describe('null: valid until an operator disables it')),
    lastUsedAt: z
      .nullable(time)
      .check(
        describe('up to five minutes before the last use; null: not used in the last 400 days'),
      ),
    status: z
      .enum(API_KEY_STATUSES)
      .check(describe('a revocation of the subject, the tenant or a token is not part of it')),
    endedAt: z.nullable(time).check(describe('null: active')),
    revokedBy: z.nullable(z.string()).check(describe('the operator who revoked the key')),
    metadata: z.record(z.string(), z.string()),
  })
/** With the plan, which is stored elsewhere. */
export const describedKeyView = () =>
  extended(apiKeyView(), {
    plan: z
      .nullable(z.string())
      .check(
        describe(
          'null: the plan of its subject, client or tenant; of a revoked key, the plan that it had',
        ),
      ),
  })
export function viewOf(key: ListedApiKey, nowMs: number): z.infer<ReturnType<typeof apiKeyView>> {
  const status = statusOf(key, Math.floor(nowMs / 1000))
  const { id, name, subject, roles, scopes, tenant, tokenId } = key
  return {
    id,
    name,
    subject,
    roles,
    scopes,
    tenant,
    prefix: key.prefix ?? null,
    tokenId,
    createdAt: timeOf(key.createdAtSeconds),
    createdBy: key.createdBy,
    ...(key.createdByName !== undefined && { createdByName: key.createdByName }),
    rotatedAt: timeOf(key.rotatedAtSeconds),
    expiresAt: timeOrNull(key.expiresAtSeconds),
    lastUsedAt: timeOrNull(key.lastUsedAtSeconds),
    status,
    endedAt: status === 'active' ? null : timeOrNull(key.revokedAtSeconds ?? key.expiresAtSeconds),
    revokedBy: key.revokedBy ?? null,
    metadata: key.metadata ?? {},
  }
}
