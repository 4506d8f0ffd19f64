/** The processes of vitest that `npm run test:all` starts. */

export interface TestProcess {
  /** A project of `vitest.config.ts`. */
  readonly project: string
  /** Default: the mode `test`. */
  readonly mode?: string
  readonly maxWorkers?: number
}

/** Runs beside the others. */
export const FIRST: TestProcess = { project: 'parts', mode: 'early' }

/** Run one after the other. */
export const ONE_BY_ONE: readonly TestProcess[] = [
  { project: 'blackbox' },
  { project: 'blackbox-node' },
  { project: 'blackbox-cluster' },
  { project: 'bench' },
  { project: 'heap', maxWorkers: 1 },
  { project: 'parts', mode: 'late', maxWorkers: 1 },
]
