/**
 * Given to `expect` with what must not happen even once, however starved the machine is: where
 * continuous integration tries a failed test again, it does not try this one (.ci/again.mjs).
 */
export const NEVER = 'never, on any machine'
