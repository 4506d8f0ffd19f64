/** The further listeners of features. A reload of the policy keeps those that both policies have. */
import { createServer } from 'node:http'
import type { OpenListener } from '../../gateway/compose-services.ts'
import type { ListenerGateway } from '../../gateway/feature.ts'
import { problem, problemResponse } from '../../problems/problem.ts'
import type { BackgroundWork } from './background-work.ts'
import { type Listening, listen, type PolicyLimits } from './listen.ts'
import { createListeners, type NodeBindings } from './request-listener.ts'
import type { NodeRuntime } from './runtime.ts'

type ListenerContext = Parameters<ListenerGateway['fetch']>[2]

/** A feature's listener, and what answers behind it. */
export interface Answering {
  readonly listener: OpenListener
  readonly gateway: ListenerGateway
}

export interface FurtherListenersOptions {
  readonly work: BackgroundWork
  readonly isFromProxy: NodeRuntime['isFromProxy']
  /** The limits of Node that no policy sets. */
  readonly limits: object
}

interface Opened extends Listening {
  gateway: ListenerGateway
}

export function createFurtherListeners({ work, isFromProxy, limits }: FurtherListenersOptions) {
  const opened = new Map<string, Opened>()

  async function open({ listener, gateway }: Answering, ofPolicy: PolicyLimits): Promise<Opened> {
    const holder = { gateway }
    const listeners = createListeners(
      {
        /** Answers only trusted proxies: a client could ask for the identity headers of any path. */
        fetch: (request, bindings, context) =>
          isFromProxy((bindings as NodeBindings).incoming)
            ? holder.gateway.fetch(request, bindings as NodeBindings, context as ListenerContext)
            : problemResponse(
                problem('insufficient_permission', 'Only trusted proxies are answered.'),
              ),
      },
      work,
    )
    const server = createServer(
      { ...limits, maxHeaderSize: ofPolicy.maxHeaderSize },
      listeners.request,
    )
    return Object.assign(holder, await listen(server, listeners, ofPolicy, listener))
  }

  return {
    list: () => [...opened].map(([name, { url }]) => ({ name, url })),

    /**
     * Opens the further listeners that are new, and returns the function that uses these gateways from then on and
     * ends the other further listeners. Throws the error of the system, without a change, if one cannot listen.
     */
    async prepare(all: readonly Answering[], ofPolicy: PolicyLimits) {
      const added = all.filter(({ listener }) => !opened.has(listener.name))
      const results = await Promise.allSettled(added.map((each) => open(each, ofPolicy)))
      const listening = results.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
      const failed = results.find((each) => each.status === 'rejected')
      if (failed !== undefined) {
        await Promise.all(listening.map(({ end }) => end(0)))
        throw failed.reason
      }
      return function use(graceMs: number): void {
        const names = new Set(all.map(({ listener }) => listener.name))
        for (const [name, listener] of opened) {
          if (names.has(name)) continue
          opened.delete(name)
          work.context.waitUntil(listener.end(graceMs))
        }
        for (const { listener, gateway } of all) {
          const known = opened.get(listener.name)
          if (known === undefined) continue
          known.gateway = gateway
          known.limit(ofPolicy)
        }
        for (const [index, listener] of listening.entries()) {
          const name = added[index]?.listener.name
          if (name !== undefined) opened.set(name, listener)
        }
      }
    },

    end: (graceMs: number) => [...opened.values()].map((listener) => listener.end(graceMs)),
  }
}
