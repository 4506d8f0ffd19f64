/**
 * Message for `expect` where something must not happen even once, however slow the machine is. In
 * continuous integration a test that fails with it has no second try (.ci/again.mjs).
 */
export const NEVER = 'never, on any machine'
