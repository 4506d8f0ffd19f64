/** Names of permissions. */

/** `<thing>:<verb>`, as a route or a tool demands it; safe between quotes. */
export const PERMISSION = /^[a-z0-9_-]+(:[a-z0-9_-]+)+$/i
