/** The scenario `tokens`: what issuing and validating costs, by itself and over HTTP. */
import type { Bench } from '../bench.ts'
import type { Detail } from '../options.ts'
import { type Allocations, measureAllocations } from './measure-allocations.ts'
import { type CaseFigures, measureCases } from './measure-cases.ts'
import { measureOperations, type OperationFigures } from './measure-operations.ts'
import { measurePeers, type Peers } from './peers.ts'
import { startTokens } from './token-workerd.ts'

/** A batch needs no pause to settle and no latencies, so it is measured for less time. */
const OPERATION_SHARE = 0.25

const NO_PEERS: Peers = { measured: [], skipped: [] }

export interface TokenCosts {
  readonly operations: readonly OperationFigures[]
  readonly allocations: Allocations
  readonly http: readonly CaseFigures[]
  readonly peers: Peers
  /** How it was measured. */
  readonly options: Pick<Detail, 'seconds' | 'warmUpSeconds' | 'rounds' | 'connections'> & {
    readonly operationSeconds: number
  }
}

/** Throws for a wrong answer. */
export async function measureTokens(bench: Bench): Promise<TokenCosts> {
  const { options, backends, directory, shutdown } = bench
  const onProgress = (what: string) => bench.onProgress(`tokens: ${what}`)
  const { workerd, bundle, variables, cases } = await startTokens({ ...bench, onProgress })

  const { connections, seconds, warmUpSeconds, rounds } = options
  const operationSeconds = seconds * OPERATION_SHARE
  const operations = await measureOperations({
    ...{ workerd, rounds, onProgress },
    seconds: operationSeconds,
  })
  const http = await measureCases({ cases, workerd, backends, options, onProgress })
  await workerd.close()
  onProgress('what operations allocate')
  const allocations = await measureAllocations({
    ...{ bundle, variables, directory, queueAddress: new URL(backends.originUrl).host },
  })
  const { signal } = shutdown
  const peers = options.peers
    ? await measurePeers({ seconds: operationSeconds, directory, signal, onProgress })
    : NO_PEERS
  return {
    options: { seconds, operationSeconds, warmUpSeconds, rounds, connections },
    operations,
    allocations,
    peers,
    http,
  }
}
