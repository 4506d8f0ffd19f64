/** Control server of a fault proxy, so that other processes can set faults and read its state. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Fault, parseFault } from './fault.ts'
import type { FaultProxyState } from './state.ts'

const HOST = '127.0.0.1'

/**
 * Starts the control server. `GET /` returns the state, and `PUT /` sets the fault in its JSON
 * body.
 */
export async function startControl(
  state: () => FaultProxyState,
  set: (fault: Fault) => Promise<void>,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const server = createServer(async (request, response) => {
    try {
      if (request.method === 'PUT') {
        await set(parseFault(JSON.parse(Buffer.concat(await request.toArray()).toString())))
      }
      response.setHeader('Content-Type', 'application/json').end(JSON.stringify(state()))
    } catch (error) {
      response.writeHead(400).end((error as Error).message)
    }
  })
  server.listen(0, HOST)
  await once(server, 'listening')
  return {
    url: `http://${HOST}:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Sets the fault of a proxy in another process. Throws a `TypeError` if the fault is invalid. */
export async function setFault(
  { controlUrl }: { readonly controlUrl: string },
  fault: Fault,
): Promise<void> {
  const answer = await fetch(controlUrl, { method: 'PUT', body: JSON.stringify(fault) })
  const text = await answer.text()
  if (!answer.ok) throw new TypeError(text)
}

/** Returns the state of a proxy in another process. */
export async function faultProxyState({
  controlUrl,
}: {
  readonly controlUrl: string
}): Promise<FaultProxyState> {
  return (await (await fetch(controlUrl)).json()) as FaultProxyState
}
