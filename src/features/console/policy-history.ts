/** The policies that the gateways on one Redis have used, and the operators' call that compares them. */
import * as z from 'zod/mini'
import { sha256 } from '../../crypto/sha256.ts'
import type { FeatureParts, Task } from '../../gateway/feature.ts'
import { consoleKeys } from '../../redis/keys.ts'
import { readableRecord, readList, readResult, readText, sendCommand } from '../../redis/reply.ts'
import { type AdminCall, adminGroup } from '../../routes/admin/call.ts'
import type { CallFrame } from '../../routes/admin/frame.ts'
import { time } from '../../routes/admin/input.ts'
import { refuseTenant } from '../../routes/admin/tenant.ts'
import { describe } from '../../validators/checks.ts'
import { readVariables } from '../../validators/environment.ts'
import { POLICY_PERMISSION } from './calls.ts'
import { diffPolicies } from './policy-diff.ts'
import { policyView, policyViewOf } from './policy-view.ts'
import { consoleVariables } from './schema.ts'

export const policyChangesView = z.strictObject({
  changes: z.array(
    z.strictObject({
      at: time.check(describe('when a gateway has used the policy for the first time')),
      by: z
        .nullable(z.string())
        .check(describe('who deployed it, as the deployment says; null: it does not say')),
      differences: z.array(z.string()),
    }),
  ),
})

/** Policies that are kept. */
const POLICIES = 20
const LIFE_SECONDS = 400 * 86_400
/** A larger policy is not kept. */
const MAX_CHARACTERS = 500_000
const RETRY_SECONDS = 60

/** Creates the task that records the policy of this gateway, and the call. */
export function createPolicyHistory(parts: FeatureParts): {
  readonly task: Task
  readonly calls: (frame: CallFrame) => readonly AdminCall[]
} {
  const { redis, now } = parts
  const names = consoleKeys(redis.keys)
  const { DEPLOYED_BY: by } = readVariables(parts.config, consoleVariables)
  let isRecorded = false

  /** Records the policy if the newest one is another. It does not change while the gateway lives. */
  async function record(): Promise<void> {
    if (isRecorded) return
    const text = JSON.stringify(policyViewOf(parts))
    if (text.length > MAX_CHARACTERS) return
    const hash = await sha256(text)
    const newest = readList(await sendCommand(redis, ['ZREVRANGE', names.policies, 0, 0]))
    if (newest.length === 0 || !readText(newest[0]).endsWith(`:${hash}`)) {
      const nowMs = now()
      const member = `${nowMs}:${hash}`
      const replies = await redis.send([
        ['SET', names.policy + hash, text, 'EX', LIFE_SECONDS],
        ...(by === undefined ? [] : [['SET', names.policyBy + member, by, 'EX', LIFE_SECONDS]]),
        ['ZADD', names.policies, nowMs, member],
        ['ZREMRANGEBYRANK', names.policies, 0, -1 - POLICIES],
        ['EXPIRE', names.policies, LIFE_SECONDS],
      ])
      replies.forEach(readResult)
    }
    isRecorded = true
  }

  async function changes() {
    const members = readList(
      await sendCommand(redis, ['ZREVRANGE', names.policies, 0, POLICIES - 1]),
    ).map(readText)
    if (members.length === 0) return []
    const hashes = members.map((member) => member.slice(member.indexOf(':') + 1))
    const [texts = [], authors = []] = (
      await redis.send([
        ['MGET', ...hashes.map((hash) => names.policy + hash)],
        ['MGET', ...members.map((member) => names.policyBy + member)],
      ])
    ).map((reply) => readList(readResult(reply)))
    const policies = texts.map((text) => readableRecord(text, policyView))
    return members.slice(0, -1).flatMap((member, at) => {
      const [after, before] = [policies[at], policies[at + 1]]
      if (after === undefined || before === undefined) return []
      const differences = [...diffPolicies(before, after)]
      const author = authors[at]
      return [
        {
          at: new Date(Number(member.split(':')[0])).toISOString(),
          by: typeof author === 'string' ? author : null,
          differences,
        },
      ]
    })
  }

  return {
    task: {
      everySeconds: RETRY_SECONDS,
      // The next run tries again.
      run: () => record().catch(() => {}),
    },
    calls: (frame) => [
      adminGroup(
        'Console',
        frame,
      )({
        method: 'GET',
        path: '/policy/changes',
        permission: POLICY_PERMISSION,
        id: 'readPolicyChanges',
        summary: 'Read the last changes of the policy',
        description:
          'Compares the last 20 policies that gateways on this Redis have used with `console()`. Operators with a tenant are refused (403).',
        response: 'The changes, newest first.',
        reply: () => policyChangesView,
        async handle({ scope }) {
          refuseTenant(scope)
          await record()
          return { changes: await changes() }
        },
      }),
    ],
  }
}
