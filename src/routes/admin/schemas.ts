/** Schemas that many responses and paths share. */
import * as z from 'zod'

/** RFC 3339, UTC. */
export const time = z.iso.datetime()

/** Where the next page begins; absent on the last page. */
export const cursor = z.string().optional().describe('where the next page begins')

/** A path with an id of the gateway: a UUID, in either case. */
export const idParams = z.strictObject({ id: z.uuid().toLowerCase() })

/** Names a write of a tenant's tuples that later checks must see. */
export const consistencyToken = z.string().regex(/^v1\.[0-9a-z]+\.[\w-]*$/)
