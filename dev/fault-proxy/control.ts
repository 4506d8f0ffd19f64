/** How other processes tell a fault proxy what to do, and ask what went through it. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Fault, parseFault } from './fault.ts'
import type { FaultProxyState } from './state.ts'

const HOST = '127.0.0.1'

/** Answers `GET /` with the state, and sets the fault that `PUT /` brings as JSON. */
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

/** Sets the fault of a proxy in another process. Throws if it is none. */
export async function setFault(
  { controlUrl }: { readonly controlUrl: string },
  fault: Fault,
): Promise<void> {
  const answer = await fetch(controlUrl, { method: 'PUT', body: JSON.stringify(fault) })
  const text = await answer.text()
  if (!answer.ok) throw new TypeError(text)
}

/** What a proxy in another process is doing. */
export async function faultProxyState({
  controlUrl,
}: {
  readonly controlUrl: string
}): Promise<FaultProxyState> {
  return (await (await fetch(controlUrl)).json()) as FaultProxyState
}
