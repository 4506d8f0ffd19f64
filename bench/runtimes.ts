/** The runtimes of the gateway, and the efforts of a run. */

export const RUNTIMES = ['workerd', 'node'] as const
export type Runtime = (typeof RUNTIMES)[number]

export const EFFORTS = ['quick', 'full'] as const
/** `quick`: the whole suite within three minutes; `full`: as long as the figures need. */
export type Effort = (typeof EFFORTS)[number]
