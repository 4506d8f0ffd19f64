/** The environment of an app, and what is built from it once. */
import { IS_WORKERS } from '../isolate/platform.ts'

type Variables = Readonly<Record<string, unknown>>

/** Names that servers and adapters put into the environment of each request: values of that request. */
const OF_ONE_REQUEST: ReadonlySet<string> = new Set(
  IS_WORKERS
    ? ['eventContext']
    : [
        'incoming',
        'outgoing',
        'server',
        'remoteAddr',
        'completed',
        'event',
        'requestContext',
        'lambdaContext',
        'context',
        'callback',
        'eventContext',
      ],
)

/** The variables of the process, which Workers have as bindings. */
const PROCESS: Variables = IS_WORKERS
  ? {}
  : ((globalThis as { process?: { readonly env: Variables } }).process?.env ?? {})

/** Environments that differ at the same time, such as those of tests. */
export const MAX_BUILT = 8
/** From this build on, the environment probably differs in each request. */
const SUSPICIOUS_BUILDS = 3

interface Built<Value> {
  readonly value: Value
  readonly view: View
}

interface View {
  /** As the options function sees it. */
  readonly env: object
  /** Returns the name of a variable that was read and has another value in `given`. */
  differsIn(given: object): string | undefined
}

/**
 * Returns a function that builds a value for the environment of a request: the bindings of a Worker.
 * Elsewhere it has the variables of the process, as with `env(c)` of Hono, and before them what a test
 * passes to `app.request`.
 *
 * A value is built again only for a request in whose environment a variable differs that `build` read.
 * So an environment that an adapter creates for each request costs nothing. The third build is logged.
 */
export function onceForEach<Value>(
  build: (env: object) => Value,
): (c: { readonly env: unknown }) => Value {
  const built: Built<Value>[] = []
  let builds = 0
  return function of(c) {
    const given = isObject(c.env) ? c.env : {}
    const known = built.find(({ view }) => view.differsIn(given) === undefined)
    if (known !== undefined) return known.value
    builds++
    if (builds === SUSPICIOUS_BUILDS) warn(built[0]?.view.differsIn(given))
    const view = viewOf(given)
    const value = build(view.env)
    built.unshift({ value, view })
    built.length = Math.min(built.length, MAX_BUILT)
    return value
  }
}

/** Creates the environment for an options function, and notes which bindings it reads. */
function viewOf(given: object): View {
  // A copy: the original may hold the request of the first caller.
  const bindings = variablesIn(given)
  const read = new Set<string>()
  let readAll = false

  function readVariable(name: string | symbol): unknown {
    if (typeof name !== 'string') return undefined
    read.add(name)
    return Object.hasOwn(bindings, name) ? bindings[name] : PROCESS[name]
  }

  const has = (name: string | symbol) =>
    typeof name === 'string' && (Object.hasOwn(bindings, name) || Object.hasOwn(PROCESS, name))

  const env = new Proxy<object>(
    {},
    {
      get: (_, name) => readVariable(name),
      has(_, name) {
        readVariable(name)
        return has(name)
      },
      ownKeys() {
        readAll = true
        return [...new Set([...Object.keys(PROCESS), ...Object.keys(bindings)])]
      },
      getOwnPropertyDescriptor: (_, name) =>
        has(name)
          ? { value: readVariable(name), writable: true, enumerable: true, configurable: true }
          : undefined,
    },
  )
  return {
    env,
    differsIn(other) {
      for (const name of read) if (!Object.is(bindings[name], bindingIn(other, name))) return name
      if (!readAll) return undefined
      const names = Object.keys(other)
      return names.find((name) => !OF_ONE_REQUEST.has(name) && !Object.hasOwn(bindings, name))
    },
  }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

const bindingIn = (given: object, name: string): unknown =>
  Object.hasOwn(given, name) && !OF_ONE_REQUEST.has(name) ? (given as Variables)[name] : undefined

const variablesIn = (given: object): Variables =>
  Object.assign(
    Object.create(null),
    Object.fromEntries(Object.entries(given).filter(([name]) => !OF_ONE_REQUEST.has(name))),
  )

function warn(name: string | undefined): void {
  console.warn(
    `portcullis(): the guard was built ${SUSPICIOUS_BUILDS} times, because the environment differs between ` +
      `requests (${name}). Each build loads the keys of the issuers again and forgets verified tokens. ` +
      'Pass the same value with each request, or do not read it in the options.',
  )
}
