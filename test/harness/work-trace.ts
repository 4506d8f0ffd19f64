/** The expensive calls of an action: Web Crypto, and calls to other servers. */
import { observed } from './own-calls.ts'

const METHODS = ['digest', 'importKey', 'generateKey', 'exportKey', 'sign', 'verify'] as const

/** Describes one argument by kind and size: equal descriptions cost equal work. */
function shapeOf(argument: unknown): string {
  if (argument instanceof CryptoKey)
    return `${argument.type} key ${JSON.stringify(argument.algorithm)}`
  if (argument instanceof ArrayBuffer || ArrayBuffer.isView(argument))
    return `${argument.byteLength} bytes`
  if (typeof argument !== 'object' || argument === null) return String(argument)
  // A JWK or an algorithm. Long members are keys; only their length matters.
  const members = Object.entries(argument).map(([name, value]) =>
    typeof value === 'string' && value.length > 12 ? [name, value.length] : [name, value],
  )
  return JSON.stringify(members.filter(([name]) => name !== 'kid'))
}

/**
 * Describes a call to Redis by its commands without arguments, another call by the URL's origin.
 */
function callOf(input: unknown, init: RequestInit | undefined): string {
  const body = typeof init?.body === 'string' ? JSON.parse(init.body) : undefined
  if (!Array.isArray(body)) return `fetch ${new URL(String(input)).origin}`
  const commands = Array.isArray(body[0]) ? body : [body]
  return `fetch ${commands.map((command: unknown[]) => `${command[0]}/${command.length}`).join(' ')}`
}

/**
 * Runs the action and returns its calls to Web Crypto and `fetch`, in order, each with the sizes of
 * its arguments. Two actions with equal traces do equal work, whatever the speed of the machine.
 * Does NOT see work in JavaScript itself.
 */
export async function traceOf(action: () => Promise<unknown>): Promise<readonly string[]> {
  const trace: string[] = []
  const withCrypto = METHODS.map((name) => ({
    ...{ target: crypto.subtle, name },
    onCall: (values: readonly unknown[]) =>
      void trace.push(`${name} ${values.map(shapeOf).join(', ')}`),
  }))
  const fetched = {
    ...{ target: globalThis, name: 'fetch' },
    onCall: ([input, init]: readonly unknown[]) =>
      void trace.push(callOf(input, init as RequestInit | undefined)),
  }
  await observed([...withCrypto, fetched], action)
  return trace
}
