/** Where a compared Worker is told how long to compute in vain, for each request from then on. */
export const BURN_PATH = '/-/bench/burn/'
