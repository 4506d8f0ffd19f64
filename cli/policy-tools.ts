/** The commands about policies share most of their modules, so they are loaded as one file. */
export { checkPolicy } from './policy/check.ts'
export { comparePolicies } from './policy/compare.ts'
export { explainRequest } from './policy/explain.ts'
export { loadPolicy } from './policy/load.ts'
export { replayPolicy } from './policy/replay.ts'
export { showMatrix } from './policy/show-matrix.ts'
export { testPolicies } from './policy/test.ts'
