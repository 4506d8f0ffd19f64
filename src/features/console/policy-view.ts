/** The effective policy, as operators see it. */
import * as z from 'zod/mini'
import { permissionSet } from '../../access/permissions.ts'
import { type FeatureParts, listFeatures } from '../../gateway/feature.ts'
import { describe } from '../../validators/checks.ts'
import { integer } from '../../validators/schema-parts.ts'

export const policyView = z.strictObject({
  publicUrl: z.string(),
  issuers: z.array(z.string()),
  roles: z.array(z.strictObject({ name: z.string(), permissions: z.array(z.string()) })),
  routes: z.array(
    z.strictObject({
      method: z.string(),
      host: z.nullable(z.string()),
      path: z.string(),
      permission: z.nullable(z.string()).check(describe('null: anonymous callers may call it')),
      roles: z.array(z.string()).check(describe('the roles that have the permission')),
      limits: z.array(z.string()),
    }),
  ),
  limits: z.array(z.strictObject({ name: z.string(), limit: integer(), windowSeconds: integer() })),
  features: z.array(z.string()),
  hasAuditStore: z.boolean(),
})
export type PolicyView = z.infer<typeof policyView>

export function policyViewOf({ policy, publicUrl, issuers, auditDb }: FeatureParts): PolicyView {
  const roles = [...policy.roles]
  return {
    publicUrl,
    issuers: [...issuers],
    roles: roles.map(([name, permissions]) => ({ name, permissions: [...permissions] })),
    routes: policy.routes.map(({ method, host, path, permission, limits }) => ({
      ...{ method, host: host ?? null, path, permission: permission ?? null },
      roles:
        permission === undefined
          ? []
          : roles.flatMap(([name, has]) => (permissionSet(has).covers(permission) ? [name] : [])),
      limits: limits.map(({ name }) => name),
    })),
    limits: [...policy.limits.values()].map(({ name, limit, windowSeconds }) => ({
      ...{ name, limit, windowSeconds },
    })),
    features: listFeatures(policy).map(({ name }) => name),
    hasAuditStore: auditDb !== undefined,
  }
}
