/** What an import writes so that gateways find a credential whose secret was not drawn for its lane. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { withBroadcast } from '../../../src/access/revocation/redis/broadcast.ts'
import { createRefreshFamilies } from '../../../src/access/tokens/redis/refresh-families.ts'
import { newRefreshToken } from '../../../src/access/tokens/refresh-token.ts'
import { importKeys } from '../../../src/runtimes/node/redis/import/import-keys.ts'
import { GATEWAY, nowSeconds } from '../../access/admission/callers.ts'
import { lanesOver } from '../../access/admission/redis/lanes.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { overResp } from '../../harness/redis-protocols.ts'

let from: TestRedis
let to: TestRedis
beforeAll(async () => {
  from = await startTestRedis()
  to = await startTestRedis()
})
afterAll(async () => {
  await from?.close()
  await to?.close()
})

test('replicas have the note that leads to a refresh family, as they have the family', async () => {
  const [source, server] = [overResp(from), overResp(to)]
  const written: { command: string; acknowledgedBy: number | undefined }[] = []
  const cluster = withBroadcast(
    lanesOver({ ...server, replicasAcked: 1 }, 64, ({ commands, options }) => {
      for (const [name, key] of commands)
        written.push({ command: `${name} ${key}`, acknowledgedBy: options?.acknowledgedBy })
      return server.send(commands)
    }),
  )
  // Always the same one, whose lane is not that of the subject.
  const { familyHash, hash } = await newRefreshToken((bytes) => new Uint8Array(bytes).fill(7))
  const grant = { subject: 'anne', client: 'app', roles: [], scopes: [], audiences: [GATEWAY] }
  const times = { startedAtSeconds: nowSeconds(), expiresAtSeconds: nowSeconds() + 600 }
  const family = {
    ...{ session: { id: 'session-1', grant, ...times }, current: hash },
    ...{ previous: undefined, ended: false },
  }
  await createRefreshFamilies(source).open(familyHash, family, 600)
  const options = { isFinal: true, isDry: false, merges: false, now: Date.now }
  const done = { onPass: () => {}, onProgress: () => {} }
  const imported = await importKeys({ source, cluster, origin: 'here', ...options, ...done })
  expect(imported).toMatchObject({ outcome: 'done' })
  expect(await createRefreshFamilies(cluster).find(familyHash)).toMatchObject({ current: hash })
  const notes = written.filter(({ command }) => /^SET .*:moved:/.test(command))
  const families = written.filter(({ command }) => /^HSET .*:refresh:/.test(command))
  expect([notes.length, families.length]).toEqual([1, 1])
  for (const { acknowledgedBy } of [...notes, ...families]) expect(acknowledgedBy).toBe(1)
})
