/** Keeps the objects of requests in the young generation of the heap. */
import { setFlagsFromString } from 'node:v8'

/**
 * Ends V8's choice of a generation for new objects, for this process and its threads. From the first requests, V8
 * may conclude that requests live long, and create all later ones in the old generation until the process
 * ends. Call it before the first request. `NODE_OPTIONS` does not accept the flag.
 */
export function keepObjectsYoung(): void {
  setFlagsFromString('--no-allocation-site-pretenuring')
}
