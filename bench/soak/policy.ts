/**
 * The shipped policy, with an origin timeout that a fault of some seconds can exceed: none exceeds
 * 15 seconds.
 */
import shipped from '../../portcullis.config.ts'

const ORIGIN_TIMEOUT_MS = 2_000

export default {
  ...shipped,
  routes: shipped.routes.map((route) => ({ ...route, originTimeoutMs: ORIGIN_TIMEOUT_MS })),
}
