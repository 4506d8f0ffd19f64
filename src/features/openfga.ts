/** OpenFGA as the policy decision point: `import { openfga } from 'portcullis/openfga'`. */
import { Misconfigured } from '../errors.ts'
import { coalescedDecisionPoint } from '../relations/coalesced-decision-point.ts'
import { createOpenfgaDecisionPoint } from '../relations/decision-points/openfga.ts'
import type { ExternalDecisionPoint } from '../relations/definition.ts'
import { decisionPointsOf, decisionPointVariables } from '../validators/decision-points.ts'

/** Returns the policy decision point for `authority` of the relations. Needs `OPENFGA_URL`. */
export function openfga(): ExternalDecisionPoint {
  return {
    feature: 'openfga',
    variables: decisionPointVariables,
    create(config, options) {
      const { openfga: server, timeoutMs } = decisionPointsOf(config)
      if (server === undefined)
        throw new Misconfigured('The environment', [
          'OPENFGA_URL: is missing, but the policy needs it',
        ])
      const decisionPoint = createOpenfgaDecisionPoint({ ...server, ...options, timeoutMs })
      return coalescedDecisionPoint({ ...options, decisionPoint, maxWaitMs: timeoutMs })
    },
  }
}
