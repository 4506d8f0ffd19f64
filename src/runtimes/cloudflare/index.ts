/** The Workers of a deployment on Cloudflare: the gateway, and the audit trail behind it. */

export type { QueueBinding } from '../../audit/queue/audit-queue.ts'
export type { ExportBucket, ExportOptions } from '../../audit/r2/chain-export.ts'
export type { AuditDatabase, AuditStatement, StatementResult } from '../../audit/sql/d1/database.ts'
export type { GatewayEnv } from '../../gateway/compose-services.ts'
export type { Fetches } from '../../origin/origin.ts'
export type { Policy } from '../../policy/policy.ts'
export {
  type AuditBatch,
  type AuditEnv,
  type AuditMessage,
  type AuditSchedule,
  type AuditWorker,
  auditWorker,
} from './audit-worker.ts'
export { type GatewayWorker, gatewayWorker, type WorkerContext } from './gateway-worker.ts'
