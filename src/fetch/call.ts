/** What frameworks pass to a handler: a request, or an object with it. */
import { IS_WORKERS } from '../isolate/platform.ts'

/** The part of the `ExecutionContext` of a Worker that is needed. */
interface WorkerContext {
  waitUntil(promise: Promise<unknown>): void
  passThroughOnException(): void
  readonly props: object
}

/** The members that events and contexts of frameworks have. */
interface Event {
  readonly request?: unknown
  readonly event?: unknown
  readonly params?: unknown
  /**
   * SvelteKit: its adapters return the address of the connection, or what the platform or a variable that the
   * operator sets determines. `clientAddress` of Astro is not read: on Node it can be the first entry of
   * `X-Forwarded-For`, which a client chooses.
   */
  readonly getClientAddress?: () => string
  /** SvelteKit in a Worker. */
  readonly platform?: { readonly env?: unknown; readonly context?: unknown }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

/** Reports whether it is a request, also of another realm or of a class of the framework. */
const isRequest = (value: unknown): value is Request =>
  isObject(value) && 'headers' in value && 'method' in value && 'url' in value

/**
 * Returns the request of a call: the first argument, its member `request`, or `request` of its member
 * `event`. Throws a `TypeError` if none of them is a request.
 */
export function callOf(args: readonly unknown[]) {
  const [first, second, third] = args
  const outer: Event = isObject(first) ? first : {}
  const event: Event = isObject(outer.event) ? outer.event : outer
  const request = isRequest(first) ? first : event.request
  if (!isRequest(request))
    throw new TypeError('guard: call the handler with a Request, or with an object that has one')
  const after: Event = isObject(second) ? second : {}
  const bindings = isRequest(first) ? second : event.platform?.env
  return {
    request,
    /** The bindings of a Worker. Elsewhere empty: the options get the variables of the process. */
    env: IS_WORKERS && isObject(bindings) ? bindings : {},
    /** What a server passes beside the request, such as the connection. */
    beside: second,
    /** What has `waitUntil`, in a Worker. */
    context: [third, event.platform?.context].find(isWorkerContext),
    /** Returns the path parameters. */
    async params() {
      const params = await (isRequest(first) ? after.params : event.params)
      return isObject(params) ? { ...params } : {}
    },
    /** Replaces the request of a hook, which passes its event on: the guard may have read and bounded the body. */
    replaceRequest(admitted: Request) {
      // A hook of SvelteKit, or a middleware of Astro with `next`.
      const isHook = outer !== event || typeof second === 'function'
      if (isHook && !isRequest(first)) Reflect.set(event, 'request', admitted)
    },
    /** Returns the address that the framework reports. Undefined: it reports none. */
    address: () => event.getClientAddress?.(),
  }
}

const isWorkerContext = (value: unknown): value is WorkerContext =>
  isObject(value) && 'waitUntil' in value
