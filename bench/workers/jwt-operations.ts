/** Issues and verifies JWTs, with each algorithm. */

import { createTokenIssuer } from '../../src/access/tokens/token-issuer.ts'
import { createTokenVerifier } from '../../src/access/tokens/verifier.ts'
import type { Config } from '../../src/parts.ts'
import { ALGORITHMS, FORGERIES, forged } from '../tokens/operations.ts'
import { grantFor, subjectOf, TTL_SECONDS, tokensOf } from './grant.ts'
import type { Operate, Operations } from './operations.ts'

/** Creates the operations. `verify` uses a verifier without a cache, `recall` one with a cache. */
export async function jwtOperations(config: Config): Promise<Operations> {
  const { publicUrl, issuers } = config
  const issuer = createTokenIssuer({
    keys: config.signingKeys?.keys ?? [],
    issuer: publicUrl,
    references: nowhere,
    defaultTtlSeconds: TTL_SECONDS,
  })
  const cold = createTokenVerifier({ issuers, maxCachedBytes: 0 })
  const warm = createTokenVerifier({ issuers })
  const grant = grantFor(publicUrl)
  const operations: Record<string, Operate> = {}
  const refused: string[] = []

  for (const algorithm of ALGORITHMS) {
    const tokens = await tokensOf(issuer, grant, { algorithm })
    operations[`issue-${algorithm}`] = async () => (await issuer.issue(grant, { algorithm })).token
    operations[`verify-${algorithm}`] = async (index) => subjectOf(await cold.verify(tokens(index)))
    operations['recall-jwt'] ??= async (index) => subjectOf(await warm.verify(tokens(index)))
    await cold.verify(forged(tokens(0))).catch(() => refused.push(algorithm))
  }
  return { ...operations, [FORGERIES]: () => refused.join() }
}

const nowhere = {
  put: async () => {},
  find: async () => undefined,
  remove: async () => {},
}
