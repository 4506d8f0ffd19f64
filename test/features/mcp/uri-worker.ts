/** A Worker that returns the URIs of a list that are in their normal form. */
import { isNormalUri } from '../../../src/features/mcp/resource-uri.ts'

export default {
  async fetch(request: Request) {
    const uris = (await request.json()) as string[]
    return Response.json(uris.filter(isNormalUri))
  },
}
