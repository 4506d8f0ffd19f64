/** Repeats one operation of the product's token modules, so often that HTTP costs little. */
import type { GatewayEnv } from '../../src/index.ts'
import { parseConfig } from '../../src/parts.ts'
import { type BatchAnswer, NOTHING } from '../tokens/operations.ts'
import { jwtOperations } from './jwt-operations.ts'
import { opaqueOperations } from './opaque-operations.ts'

/** Returns the issued token or the verified subject. Throws for a wrong one. */
export type Operate = (index: number) => Promise<string> | string
export type Operations = Readonly<Record<string, Operate>>

/** Creates the handler of `/operations/<id>/<count>`. */
export function createOperations(env: GatewayEnv) {
  let operations: Operations | undefined
  return async function operate(request: Request): Promise<Response> {
    operations ??= await prepare(env)
    const [, , id = '', count = ''] = new URL(request.url).pathname.split('/')
    const operation = operations[id]
    if (operation === undefined) return new Response('no such operation', { status: 404 })
    return Response.json(await repeat(operation, Number(count)))
  }
}

async function repeat(operation: Operate, count: number): Promise<BatchAnswer> {
  let last: string | undefined
  for (let index = 0; index < count; index++) last = await operation(index)
  return { count, last }
}

async function prepare(env: GatewayEnv): Promise<Operations> {
  const config = parseConfig(env)
  const made = await Promise.all([opaqueOperations(config), jwtOperations(config)])
  return Object.assign({ [NOTHING]: async () => '' }, ...made) as Operations
}
