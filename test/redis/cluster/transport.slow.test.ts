/** A real cluster over TLS, and over IPv6: what its nodes report leads to sockets that work, or to none. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { allLanes } from '../../../src/redis/lanes.ts'
import { connectResp, type RespClient } from '../../../src/runtimes/node/redis/resp.ts'
import { writeAuthority, writeCertificate } from '../../harness/certificate.ts'
import { moveSlot, startRedisCluster, type TestCluster } from '../../harness/redis-cluster.ts'
import { hasRedisServer } from '../../harness/resp-server.ts'

const LANES = 6
const TIMEOUT_MS = 1_000
/** A start without a replica to acknowledge writes. */
const ALONE = { timeoutMs: TIMEOUT_MS, replicasAcked: 0 }

async function repliesOf(client: RespClient) {
  const redis = client.connect({ timeoutMs: TIMEOUT_MS })
  const lanes = [redis, ...allLanes(redis)]
  return Promise.all(
    lanes.map(({ keys, send }) =>
      send([['SET', `${keys.prefix}key`, '1']]).then(
        ([reply]) => reply?.result,
        ({ fault }) => fault,
      ),
    ),
  )
}
const ALL_SERVED = Array.from({ length: LANES + 1 }, () => 'OK')

afterEach(() => void vi.restoreAllMocks())

describe.skipIf(!hasRedisServer)('a cluster over TLS', () => {
  const folder = mkdtempSync(join(tmpdir(), 'cluster-tls-'))
  const trusted = getCACertificates('default')
  const clients: RespClient[] = []
  let cluster: TestCluster
  beforeAll(async () => {
    writeAuthority(folder)
    // As a managed service: its name only, although nodes report addresses.
    writeCertificate(folder, 'named', 'DNS:localhost')
    cluster = await startRedisCluster({ replicas: 0, tls: { folder, name: 'named' } })
  })
  afterAll(async () => {
    setDefaultCACertificates(trusted)
    for (const each of clients) each.close()
    await cluster.close()
    rmSync(folder, { recursive: true })
  })
  function client(host: string): RespClient {
    const servers = cluster.masters.map(({ tlsPort }) => `${host}:${tlsPort}`).join(',')
    const created = connectResp({ url: `rediss+cluster://${servers}/?lanes=${LANES}`, ...ALONE })
    clients.push(created)
    return created
  }

  test('of an authority that is not trusted serves nothing, and the start says so', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    const tested = client('localhost')
    expect(await tested.check()).toEqual([
      expect.stringMatching(/^REDIS_URL: the certificate of a node is not accepted \([A-Z_]+\)/),
    ])
    expect(new Set(await repliesOf(tested))).toEqual(new Set(['unreachable']))
  })

  test('whose certificate has the name of the URL serves all lanes, although nodes report addresses', async () => {
    setDefaultCACertificates([...trusted, readFileSync(join(folder, 'ca.pem'), 'utf8')])
    const tested = client('localhost')
    expect(await tested.check()).toEqual([])
    expect(await repliesOf(tested)).toEqual(ALL_SERVED)
    // Only sockets with TLS: those of this test's own connections are the others.
    expect([...tested.masters().keys()].sort()).toEqual(
      cluster.masters.map(({ tlsPort }) => `127.0.0.1:${tlsPort}`).sort(),
    )
  })

  test('whose certificate does not have the address of the URL serves nothing', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    const tested = client('127.0.0.1')
    expect(await tested.check()).toEqual([
      expect.stringContaining('is not accepted (ERR_TLS_CERT_ALTNAME_INVALID)'),
    ])
    expect(new Set(await repliesOf(tested))).toEqual(new Set(['unreachable']))
  })
})

describe.skipIf(!hasRedisServer)('a cluster over IPv6', () => {
  let cluster: TestCluster
  beforeAll(async () => {
    cluster = await startRedisCluster({ host: '::1' })
  })
  afterAll(() => cluster.close())

  test('serves all lanes from the addresses that its nodes report, and survives a move of a slot', async () => {
    const client = connectResp({ url: `${cluster.url}/?lanes=${LANES}`, timeoutMs: TIMEOUT_MS })
    try {
      expect(await client.check()).toEqual([])
      expect([...client.masters().keys()].sort()).toEqual(
        cluster.masters.map(({ port }) => `[::1]:${port}`).sort(),
      )
      expect(await repliesOf(client)).toEqual(ALL_SERVED)
      // MOVED has an IPv6 address too, without brackets.
      const [lane] = allLanes(client.connect({ timeoutMs: TIMEOUT_MS }))
      if (lane === undefined) throw new Error('there is no lane')
      const slot = Number(await cluster.nodes[0]?.direct.cluster('KEYSLOT', lane.keys.prefix))
      const owner = await cluster.ownerOf(slot)
      const next = cluster.masters.find((node) => node !== owner)
      if (next === undefined) throw new Error('there is no other master')
      await moveSlot(cluster, slot, next)
      const key = `${lane.keys.prefix}key`
      expect(await lane.send([['GET', key]])).toEqual([{ result: '1' }])
    } finally {
      client.close()
    }
  })
})
