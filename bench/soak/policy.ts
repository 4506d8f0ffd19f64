/**
 * The policy that ships, with a deadline for the origin that a fault of some seconds can meet: at 15
 * seconds none of them would.
 */
import shipped from '../../portcullis.config.ts'

const ORIGIN_TIMEOUT_MS = 2_000

export default {
  ...shipped,
  routes: shipped.routes.map((route) => ({ ...route, originTimeoutMs: ORIGIN_TIMEOUT_MS })),
}
