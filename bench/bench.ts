/** Context of every kind of benchmark. */
import type { Shutdown } from '../dev/start/shutdown.ts'
import type { Backends } from './backends.ts'
import type { Detail } from './options.ts'
import type { BenchTokens } from './tokens.ts'

export interface Bench {
  readonly options: Detail
  readonly backends: Backends
  /** Directory for generated files; removed at the end. */
  readonly directory: string
  readonly shutdown: Pick<Shutdown, 'signal' | 'defer'>
  /** Receives progress messages. */
  readonly onProgress: (what: string) => void
}

/** Additional context of the benchmarks of the pipeline. */
export interface PipelineBench extends Bench {
  readonly tokens: BenchTokens
}
