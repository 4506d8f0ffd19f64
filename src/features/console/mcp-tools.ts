/** Definitions of tools in Redis: those that MCP servers have changed, and those that operators have approved. */
import * as z from 'zod/mini'
import { isWithin } from '../../isolate/period.ts'
import type { RedisConnection } from '../../redis/connection.ts'
import { keyPart } from '../../redis/key-part.ts'
import { consoleKeys } from '../../redis/keys.ts'
import {
  readableRecord,
  readCount,
  readList,
  readResult,
  readText,
  recordIn,
  sendCommand,
} from '../../redis/reply.ts'
import { integer } from '../../validators/schema-parts.ts'
import type { ToolApprovals } from '../mcp/tool-approvals.ts'

const seenSchema = z.strictObject({
  hash: z.string(),
  atSeconds: integer(),
  /** JSON of what the hash covers. Empty: it is too long to be shown. */
  text: z.string(),
})
const approvalSchema = z.strictObject({
  hash: z.string(),
  atSeconds: integer(),
  createdBy: z.string(),
  createdByName: z.optional(z.string()),
})
export type SeenTool = z.infer<typeof seenSchema>
export type ToolApproval = z.infer<typeof approvalSchema>

interface ToolState {
  readonly seen?: SeenTool
  readonly approved?: ToolApproval
}

export interface McpTools extends ToolApprovals {
  /** Returns what is stored of the tools of a server, by name. */
  list(server: string): Promise<ReadonlyMap<string, ToolState>>
  approve(server: string, name: string, approval: ToolApproval): Promise<void>
  /** Returns false if there is no approval. */
  withdraw(server: string, name: string): Promise<boolean>
}

/** An approval is for the time until the policy has the new hash. */
const LIFE_SECONDS = 400 * 86_400
/** A longer definition is not shown, and cannot be approved. */
export const MAX_TEXT = 16_384
/** An isolate reads the approval of a definition at most this often. */
const MEMORY_MS = 10_000
const [SEEN, APPROVED] = ['seen:', 'approved:']

/** Without indentation, which multiplies the size of a deep definition. */
function textOf(definition: object): string {
  const text = JSON.stringify({ ...definition, _meta: undefined })
  return text.length > MAX_TEXT ? '' : text
}

export function createMcpTools(redis: RedisConnection, now: () => number): McpTools {
  const { mcpTools } = consoleKeys(redis.keys)
  const nowSeconds = () => Math.floor(now() / 1_000)
  const known = new Map<string, { readonly isApproved: boolean; readonly readMs: number }>()

  const keyOf = async (server: string) => mcpTools + (await keyPart(server))

  async function write(server: string, field: string, value: object): Promise<void> {
    const key = await keyOf(server)
    const replies = await redis.send([
      ['HSET', key, field, JSON.stringify(value)],
      ['EXPIRE', key, LIFE_SECONDS],
    ])
    replies.forEach(readResult)
  }

  return {
    async isApproved({ server, name, hash, definition }) {
      const tool = `${server} ${name}`
      const remembered = known.get(tool + hash)
      if (remembered !== undefined && isWithin(remembered.readMs, MEMORY_MS, now()))
        return remembered.isApproved
      try {
        const text = textOf(definition)
        const key = await keyOf(server)
        const [found, ...others] = await redis.send([
          ['HGET', key, APPROVED + name],
          ['HSET', key, SEEN + name, JSON.stringify({ hash, atSeconds: nowSeconds(), text })],
          ['EXPIRE', key, LIFE_SECONDS],
        ])
        others.forEach(readResult)
        const record = readResult(found)
        const isApproved = record !== null && recordIn(record, approvalSchema).hash === hash
        // A server that changes its definitions all the time fills no memory.
        if (known.size >= 1_000) known.clear()
        known.set(tool + hash, { isApproved, readMs: now() })
        return isApproved
      } catch {
        return false
      }
    },

    async list(server) {
      const fields = readList(await sendCommand(redis, ['HGETALL', await keyOf(server)]))
      const tools = new Map<string, ToolState>()
      for (let at = 0; at < fields.length; at += 2) {
        const [field, value] = [readText(fields[at]), fields[at + 1]]
        const name = field.slice(field.indexOf(':') + 1)
        const [seen, approved] = field.startsWith(SEEN)
          ? [readableRecord(value, seenSchema)]
          : [undefined, readableRecord(value, approvalSchema)]
        tools.set(name, {
          ...tools.get(name),
          ...(seen && { seen }),
          ...(approved && { approved }),
        })
      }
      return tools
    },

    approve: (server, name, approval) => write(server, APPROVED + name, approval),

    async withdraw(server, name) {
      const field = [await keyOf(server), APPROVED + name]
      // A call whose reply was lost is sent a second time, and then deletes nothing.
      const isKnown = readCount(await sendCommand(redis, ['HEXISTS', ...field]), 1) === 1
      readCount(await sendCommand(redis, ['HDEL', ...field]), 1)
      return isKnown
    },
  }
}
