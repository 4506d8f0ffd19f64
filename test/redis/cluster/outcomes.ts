/** Asks the lanes of a cluster about callers. */
import { createAdmission } from '../../../src/access/admission/admission.ts'
import { createLaneAdmissionStore } from '../../../src/access/admission/redis/lane-store.ts'
import type { Principal } from '../../../src/access/principal.ts'
import { Unavailable } from '../../../src/errors.ts'
import { ADDRESS } from '../../access/admission/callers.ts'

type Redis = Parameters<typeof createLaneAdmissionStore>[0]

/** Returns how many callers were admitted, refused and not decided. */
export async function outcomesOf(redis: Redis, asked: readonly Principal[], now: () => number) {
  const admission = createAdmission({ store: createLaneAdmissionStore(redis), now })
  const count = { admitted: 0, refused: 0, unavailable: 0 }
  await Promise.all(
    asked.map(async (caller) => {
      try {
        const verdict = await admission.admit({
          ...{ principal: caller, address: ADDRESS, limits: [] },
          ...{ proof: undefined, relation: undefined },
        })
        count[verdict.denial === undefined ? 'admitted' : 'refused'] += 1
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error
        count.unavailable += 1
      }
    }),
  )
  return count
}
