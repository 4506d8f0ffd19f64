/** AuthZEN as the policy decision point: `import { authzen } from 'portcullis/authzen'`. */

import { coalescedDecisionPoint } from '../../access/relations/coalesced-decision-point.ts'
import type { ExternalDecisionPoint } from '../../access/relations/definition.ts'
import { Misconfigured } from '../../errors.ts'
import { mistakeAt } from '../../problems/mistake.ts'
import { decisionPointVariables, readDecisionPoints } from '../../validators/decision-points.ts'
import { createAuthzenDecisionPoint } from './decision-point.ts'

/** Returns the policy decision point for `authority` of the relations. Needs `AUTHZEN_URLS`. */
export function authzen(): ExternalDecisionPoint {
  return {
    feature: 'authzen',
    variables: decisionPointVariables,
    create(config, options) {
      const { authzen: servers, timeoutMs } = readDecisionPoints(config)
      if (servers === undefined)
        throw new Misconfigured('The environment', [
          mistakeAt('missing', ['AUTHZEN_URLS'], 'is missing, but the policy needs it'),
        ])
      const decisionPoint = createAuthzenDecisionPoint({ ...servers, ...options, timeoutMs })
      return coalescedDecisionPoint({ ...options, decisionPoint, maxWaitMs: timeoutMs })
    },
  }
}
