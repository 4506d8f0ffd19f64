/** The runtimes of the table. */
export const EVERY_RUNTIME = ['workerd', 'Node'] as const
export const NODE_ONLY = ['Node'] as const

export type RuntimeName = (typeof EVERY_RUNTIME)[number]
