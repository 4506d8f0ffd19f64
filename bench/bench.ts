/** What every kind of benchmark is given. */
import type { Shutdown } from '../dev/start/shutdown.ts'
import type { Backends } from './backends.ts'
import type { Detail } from './options.ts'
import type { BenchTokens } from './tokens.ts'

export interface Bench {
  readonly options: Detail
  readonly backends: Backends
  /** For generated files; removed at the end. */
  readonly directory: string
  readonly shutdown: Pick<Shutdown, 'signal' | 'defer'>
  /** Told what happens next. */
  readonly onProgress: (what: string) => void
}

/** What the benchmarks of the pipeline are given besides. */
export interface PipelineBench extends Bench {
  readonly tokens: BenchTokens
}
