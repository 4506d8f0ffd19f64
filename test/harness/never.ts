/**
 * Message for an `expect` that must not fail even once on a slow machine. In continuous integration
 * a test that fails with it is not retried (.ci/again.mjs).
 */
export const NEVER = 'never, on any machine'
