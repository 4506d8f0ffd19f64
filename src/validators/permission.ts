/** Syntax of permission names. */

/** `<thing>:<verb>`, as a route or a tool requires it. Safe inside quotation marks. */
export const PERMISSION = /^[a-z0-9_-]+(:[a-z0-9_-]+)+$/i
