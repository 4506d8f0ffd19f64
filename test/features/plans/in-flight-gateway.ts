/** The complete gateway with a limit of requests in flight. */
import { quotas } from '../../../src/features/plans/index.ts'
import {
  composeServices,
  createGateway,
  definePolicy,
  type GatewayEnv,
} from '../../../src/index.ts'
import { entry } from '../../origin/entry.ts'

/** Slots are held for long, so that only a release makes them free during a test. */
const policy = definePolicy({
  roles: { reader: ['slots:read'] },
  limits: { inFlight: quotas({ concurrency: 3, by: 'subject', slotSeconds: 3_600 }) },
  routes: [{ method: 'GET', path: '/slots', permission: 'slots:read', limits: ['inFlight'] }],
})

export default entry((env: GatewayEnv, runtime) =>
  createGateway(composeServices(env, policy, runtime), policy),
)
