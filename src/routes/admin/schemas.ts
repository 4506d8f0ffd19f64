/** Schemas that many answers and paths have in common. */
import * as z from 'zod'

/** RFC 3339, UTC. */
export const time = z.iso.datetime()

/** Where the next page begins; absent on the last one. */
export const cursor = z.string().optional().describe('where the next page begins')

/** A path with an id of the gateway: a UUID, in either case. */
export const idParams = z.strictObject({ id: z.uuid().toLowerCase() })

/** Up to which write of a tenant's tuples something is known. */
export const consistencyToken = z.string().regex(/^v1\.[0-9a-z]+\.[\w-]*$/)
