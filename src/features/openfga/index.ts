/** OpenFGA as the policy decision point: `import { openfga } from 'portcullis/openfga'`. */

import { coalescedDecisionPoint } from '../../access/relations/coalesced-decision-point.ts'
import type { ExternalDecisionPoint } from '../../access/relations/definition.ts'
import { Misconfigured } from '../../errors.ts'
import { mistakeAt } from '../../problems/mistake.ts'
import { decisionPointVariables, readDecisionPoints } from '../../validators/decision-points.ts'
import { createOpenfgaDecisionPoint } from './decision-point.ts'

/** Returns the policy decision point for `authority` of the relations. Needs `OPENFGA_URL`. */
export function openfga(): ExternalDecisionPoint {
  return {
    feature: 'openfga',
    variables: decisionPointVariables,
    create(config, options) {
      const { openfga: server, timeoutMs } = readDecisionPoints(config)
      if (server === undefined)
        throw new Misconfigured('The environment', [
          mistakeAt('missing', ['OPENFGA_URL'], 'is missing, but the policy needs it'),
        ])
      const decisionPoint = createOpenfgaDecisionPoint({ ...server, ...options, timeoutMs })
      return coalescedDecisionPoint({ ...options, decisionPoint, maxWaitMs: timeoutMs })
    },
  }
}
