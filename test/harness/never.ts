/** Message for an `expect` that must not fail even once, also on a slow machine. */
export const NEVER = 'never, on any machine'
