/** Starts a gateway with enforced signatures on Node, and an origin that notes what reaches it. */
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { signatures } from '../../src/features/signatures/index.ts'
import { definePolicy } from '../../src/policy/policy.ts'
import { serve } from '../../src/runtimes/node/index.ts'
import { startRedis } from '../redis.ts'
import type { Case } from './case.ts'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
const HOST = '127.0.0.1'

export interface Outcome {
  readonly status: number
  /** Whether the origin was called. */
  readonly hasReached: boolean
}

/** A request that cannot be sent has the status 0. */
const NOT_SENT: Outcome = { status: 0, hasReached: false }

export async function startGateway() {
  const redis = await startRedis({})
  let reached = 0
  const origin = createServer((incoming, response) => {
    reached += 1
    incoming.resume().on('end', () => response.end('{}'))
  })
  await new Promise<void>((resolve) => origin.listen(0, HOST, resolve))
  const headers = ['User-Agent', 'Referer', 'X-*']
  const inspect = { signatures: signatures({ mode: 'enforce', headers }) }
  const gateway = await serve({
    policy: definePolicy({
      roles: {},
      limits: {
        all: { limit: 1_000_000, windowSeconds: 60, by: 'address', onUnavailable: 'deny' },
      },
      routes: ['/probe', '/probe/*'].flatMap((path) =>
        METHODS.map((method) => {
          return { method, path, anonymous: true as const, limits: ['all'] as const, inspect }
        }),
      ),
    }),
    port: 0,
    env: {
      REDIS_URL: redis.url,
      AUDIT_STREAM: 'redis',
      PUBLIC_URL: 'http://localhost',
      ORIGIN_URL: `http://${HOST}:${(origin.address() as AddressInfo).port}`,
    },
  })
  const port = Number(new URL(gateway.url).port)

  /** Sends one request at a time, so that what reaches the origin belongs to it. */
  async function send({ method, target, headers, body }: Case): Promise<Outcome> {
    const before = reached
    const status = await new Promise<number>((resolve) => {
      try {
        const path = `/probe${target}`
        const sent = request({ host: HOST, port, method, path, headers }, (response) => {
          response.resume().on('end', () => resolve(response.statusCode ?? 0))
        })
        sent.on('error', () => resolve(0))
        sent.end(body)
      } catch {
        resolve(0)
      }
    })
    return status === 0 ? NOT_SENT : { status, hasReached: reached > before }
  }
  return {
    send,
    async close() {
      await gateway.close()
      origin.closeAllConnections()
      origin.close()
      await redis.close()
    },
  }
}
