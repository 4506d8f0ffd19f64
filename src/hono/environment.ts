/** The environment of an app, and what is built from it once. */
import type { Context } from 'hono'

/** Names that servers other than workerd put into the environment of each request. */
const SERVER_BINDINGS = ['incoming', 'server']

const PROCESS = (globalThis as { process?: { readonly env: object } }).process?.env ?? {}

/**
 * Returns the environment of a request: the bindings of a Worker, or those that a test passes to
 * `app.request`. Otherwise the variables of the process.
 */
function readEnvironment(c: Context): object {
  const bindings: unknown = c.env
  if (typeof bindings !== 'object' || bindings === null) return PROCESS
  const names = Object.keys(bindings)
  if (names.length === 0 || SERVER_BINDINGS.some((name) => names.includes(name))) return PROCESS
  return bindings
}

/**
 * Returns a function that builds a value for the environment of a request. It builds once for each
 * environment: in a Worker, once for each isolate.
 */
export function onceForEach<Value>(build: (env: object) => Value): (c: Context) => Value {
  const built = new WeakMap<object, Value>()
  return function of(c) {
    const known = typeof c.env === 'object' && c.env !== null ? built.get(c.env) : undefined
    if (known !== undefined) return known
    const env = readEnvironment(c)
    let value = built.get(env)
    if (value === undefined) {
      value = build(env)
      built.set(env, value)
    }
    return value
  }
}
