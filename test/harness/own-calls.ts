/**
 * Calls of functions that the whole process shares, such as `fetch`. Files share a process, and work of one may
 * continue during the tests of another. So only calls of the observed action count.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { vi } from 'vitest'

export interface Observed {
  readonly target: object
  readonly name: string
  /** Gets the arguments of each call. */
  readonly onCall: (values: readonly unknown[]) => void
}

/** Whether the observed action runs. Each observation has its own. */
type Context = AsyncLocalStorage<true>

function observe(context: Context, { target, name, onCall }: Observed) {
  const functions = target as Record<string, (...values: unknown[]) => unknown>
  const original = functions[name]
  if (original === undefined) throw new Error(`there is no function ${name}`)
  return vi.spyOn(functions, name).mockImplementation(function (this: unknown, ...values) {
    if (context.getStore() === true) onCall(values)
    return original.apply(this, values)
  })
}

/** Runs the action, and reports the calls that it makes, or work that it has begun. They reach the functions. */
export async function observed<Result>(
  all: readonly Observed[],
  action: () => Promise<Result>,
): Promise<Result> {
  const context: Context = new AsyncLocalStorage()
  const spies = all.map((one) => observe(context, one))
  try {
    return await context.run(true, action)
  } finally {
    for (const spy of spies) spy.mockRestore()
  }
}

/** Runs the action, and returns the arguments of the calls of `fetch` that it makes. */
export async function fetchesOf(
  action: () => Promise<unknown>,
): Promise<readonly Parameters<typeof fetch>[]> {
  const calls: Parameters<typeof fetch>[] = []
  const onCall = (values: readonly unknown[]) =>
    void calls.push(values as unknown as Parameters<typeof fetch>)
  await observed([{ target: globalThis, name: 'fetch', onCall }], action)
  return calls
}
