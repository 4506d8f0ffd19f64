/** Gateway processes on Node that share a stream of Redis and an audit database. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { type Verdict, verifyChain } from '../../cli/verify.ts'
import { chainQuerySchema } from '../../src/audit/log.ts'
import { createChainLog } from '../../src/audit/sql/chain-log.ts'
import type { TrailDatabase } from '../../src/audit/sql/database.ts'
import { consumerDatabase } from '../../src/runtimes/node/audit/database.ts'
import { openDatabase } from '../../src/runtimes/node/audit/open-database.ts'
import { startHttpServer } from '../harness/http-server.ts'
import { AUDIENCE, createKey, ISSUER, mint } from '../harness/issuer.ts'
import { ROOT, type Running, run } from '../harness/process.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { storedEvents } from './stored.ts'

/** The Node of the project, which may be newer than that of the machine. */
export const NODE = `${ROOT}/node_modules/node/bin/node`

export interface Gateways {
  readonly redis: TestRedis
  readonly folder: string
  /** Of each gateway that starts later. */
  environment: Record<string, string>
  start(
    variables?: Readonly<Record<string, string>>,
  ): Promise<{ readonly running: Running; readonly url: string }>
  /** Sends a request, and returns its id, or undefined if the connection was cut. */
  request(url: string): Promise<string | undefined>
  /** Sends a request that may be refused, and returns its id. */
  answered(url: string): Promise<string>
  /** Returns the status of a request. */
  status(url: string): Promise<number>
  withDatabase<Value>(work: (db: TrailDatabase) => Promise<Value>): Promise<Value>
  /** Ids of requests, one for each event in the database, in the order of the chain. */
  storedRequests(): Promise<readonly string[]>
  /** Returns the number of requests of which the database has no event. */
  missing(ids: readonly (string | undefined)[]): Promise<number>
  verdict(): Promise<Verdict>
  close(): Promise<void>
}

/** Starts what gateways need. Without an `AUDIT_DATABASE`, they use a file of SQLite in the folder. */
export async function prepareGateways(auditDatabase?: string): Promise<Gateways> {
  const redis = await startTestRedis()
  await redis.direct.flushall()
  const origin = await startHttpServer((_, response) => response.end('[]'))
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-process-'))
  const address = auditDatabase ?? `sqlite:${join(folder, 'audit.db')}`
  const key = await createKey('idp')
  const headers = { authorization: `Bearer ${await mint(key, {})}` }
  const started: Running[] = []

  const gateways: Gateways = {
    redis,
    folder,
    environment: {
      REDIS_URL: redis.redisUrl,
      REDIS_TIMEOUT_MS: '5000',
      PUBLIC_URL: 'https://gateway.test',
      ORIGIN_URL: origin.url,
      ISSUERS: JSON.stringify([
        { issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [key.publicJwk] } },
      ]),
      AUDIT_DATABASE: address,
    },
    async start(variables = {}) {
      const command = [NODE, 'test/runtimes/node/process.ts'] as const
      const environment = { ...gateways.environment, ...variables }
      const running = await run(command, environment, /ready on \S+\n/)
      started.push(running)
      return { running, url: /ready on (\S+)/.exec(running.output())?.[1] ?? '' }
    },
    async request(url) {
      try {
        const response = await fetch(`${url}/orders`, { headers })
        expect(response.status).toBe(200)
        return response.headers.get('x-request-id') ?? undefined
      } catch (error) {
        if (error instanceof TypeError) return undefined
        throw error
      }
    },
    async answered(url) {
      const response = await fetch(`${url}/orders`, { headers })
      return response.headers.get('x-request-id') ?? ''
    },
    status: async (url) => (await fetch(`${url}/orders`, { headers })).status,
    async withDatabase(work) {
      const database = await openDatabase(address)
      try {
        return await work(consumerDatabase(database))
      } finally {
        await database.close()
      }
    },
    storedRequests: () =>
      gateways.withDatabase(async (db) =>
        (await storedEvents(db)).map(({ requestId }) => requestId),
      ),
    async missing(ids) {
      const stored = new Set(await gateways.storedRequests())
      return ids.filter((id) => id === undefined || !stored.has(id)).length
    },
    verdict: () =>
      gateways.withDatabase((db) => {
        const chain = createChainLog(db)
        const page = async (after: number) =>
          (await chain.read(chainQuerySchema.parse({ after: `${after}` }))) as never
        return verifyChain(page, undefined)
      }),
    async close() {
      await Promise.all(started.map((running) => running.stop()))
      await origin.close()
      await redis.close()
      await rm(folder, { recursive: true })
    },
  }
  return gateways
}
