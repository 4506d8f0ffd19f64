/**
 * Measures revocations of a tenant and of a subject on a cluster of three masters with a replica each:
 * `node bench/broadcast/run.ts [revocations]`. After each one, the next request must be refused by another gateway.
 */
import { createAdmission } from '../../src/access/admission/admission.ts'
import { createLaneAdmissionStore } from '../../src/access/admission/redis/lane-store.ts'
import type { Principal } from '../../src/access/principal.ts'
import { createRevocations } from '../../src/access/revocation/redis/revocations.ts'
import { connectResp } from '../../src/runtimes/node/redis/resp.ts'
import { startRedisCluster } from '../../test/harness/redis-cluster.ts'

const LANES = 64
const ISSUER = 'https://issuer.test'
const TIMEOUT_MS = 500
const count = Number(process.argv[2] ?? 500)
const now = () => Date.now()

const principal = (subject: string, tenant: string): Principal => ({
  ...{ issuer: ISSUER, tokenIssuer: ISSUER, subject, tenant, client: 'app', session: undefined },
  ...{ roles: [], scopes: [], tokenId: subject, tokenIdHash: subject, confirmation: undefined },
  ...{ issuedAtSeconds: now() / 1000 - 10, expiresAtSeconds: now() / 1000 + 600 },
})

const cluster = await startRedisCluster()
const url = `${cluster.url}/?lanes=${LANES}`
try {
  for (const replicasAcked of [0, 1]) {
    const [writing, reading] = [0, 1].map(() =>
      connectResp({ url, timeoutMs: TIMEOUT_MS, replicasAcked }),
    )
    if (writing === undefined || reading === undefined) throw new Error('no client')
    const revocations = createRevocations(writing.connect({ timeoutMs: TIMEOUT_MS }), now)
    const store = createLaneAdmissionStore(reading.connect({ timeoutMs: TIMEOUT_MS }))
    for (const kind of ['tenant', 'subject'] as const) {
      const times: number[] = []
      let admitted = 0
      for (let n = -20; n < count; n += 1) {
        const value = crypto.randomUUID()
        const other = crypto.randomUUID()
        const caller = kind === 'tenant' ? principal(other, value) : principal(value, other)
        const cutoff = { kind, issuer: ISSUER, value, atSeconds: now() / 1000, ttlSeconds: 60 }
        const startMs = performance.now()
        await revocations.revokeBefore(cutoff)
        const tookMs = performance.now() - startMs
        const { denial } = await createAdmission({ store, now }).admit({
          ...{ principal: caller, address: '192.0.2.1', limits: [] },
          ...{ proof: undefined, relation: undefined },
        })
        if (denial === undefined) admitted += 1
        // The first ones connect, and load the scripts.
        if (n >= 0) times.push(tookMs)
      }
      times.sort((one, next) => one - next)
      const at = (part: number) => times[Math.floor(part * times.length)]?.toFixed(1)
      console.log(
        `${kind}, REDIS_REPLICAS_ACKED=${replicasAcked}: ${count} revocations, ` +
          `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ${admitted} admitted afterwards`,
      )
    }
    writing.close()
    reading.close()
  }
} finally {
  await cluster.close()
}
