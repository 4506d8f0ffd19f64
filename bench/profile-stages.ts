/** Which stage of the pipeline the time of a CPU profile belongs to. No I/O. */
import type { Frame, SampledStack } from './profile-tree.ts'
import { rounded } from './statistics.ts'

/** How a sample was found to be a stage's. */
export type Evidence = 'stack' | 'module'

/** A sample, and where it belongs. */
export interface Attributed {
  /** Of `STAGE_MODULES`, or one of `OTHERS`. */
  readonly stage: string
  readonly evidence: Evidence
  /** From the stage's own function, or else from the entry, up to where the time went. */
  readonly path: readonly Frame[]
  readonly micros: number
}

export interface StageTime {
  readonly stage: string
  /** Microseconds for each request. */
  readonly micros: number
  /** That part of them which the platform's own functions took, such as `fetch`. */
  readonly platformMicros: number
  /** That part of them which was found by module alone, after an `await`. */
  readonly byModuleMicros: number
  /** Of all time that the isolate was busy. */
  readonly share: number
}

/** Each stage, in the order of `src/app.ts`, and the file with its function. */
export const STAGE_MODULES: Readonly<Record<string, string>> = {
  requestId: 'src/middleware/request-id.ts',
  lingerOnRefusal: 'src/middleware/linger-on-refusal.ts',
  traceRequests: 'src/middleware/trace-requests.ts',
  audit: 'src/middleware/audit.ts',
  shedLoad: 'src/middleware/shed-load.ts',
  canonicalPath: 'src/middleware/canonical-path.ts',
  sanitizeHeaders: 'src/middleware/sanitize-headers.ts',
  clientAddress: 'src/middleware/client-address.ts',
  limitBody: 'src/middleware/limit-body.ts',
  banOffenders: 'src/middleware/ban-offenders.ts',
  throttle: 'src/middleware/throttle.ts',
  authenticate: 'src/middleware/authenticate.ts',
  admit: 'src/middleware/admit.ts',
  serverTiming: 'src/middleware/server-timing.ts',
  authorize: 'src/middleware/authorize.ts',
  inspect: 'src/middleware/inspect.ts',
  validate: 'src/middleware/validate.ts',
  readmit: 'src/middleware/readmit.ts',
  proxy: 'src/routes/proxy.ts',
}

/** What is no stage: Hono and what calls it, what no rule knows, and work of V8 and workerd. */
const FRAMEWORK = 'framework'
const UNATTRIBUTED = 'unattributed'
const GARBAGE = 'garbage collection'
const RUNTIME = 'runtime'
export const OTHERS = [FRAMEWORK, UNATTRIBUTED, GARBAGE, RUNTIME] as const

/**
 * Whose a module is where no stage is on the stack: after an `await` the platform calls a function
 * without those that awaited it. The first rule that fits counts.
 */
const OWNERS: readonly (readonly [beginning: string, stage: string, functions?: RegExp])[] = [
  ['src/admission/', 'admit'],
  ['src/stores/upstash/', 'admit'],
  ['src/rate-limit-headers.ts', 'admit'],
  ['@upstash/', 'admit'],
  ['src/tokens/assertion.ts', 'proxy'],
  ['src/tokens/', 'authenticate'],
  ['src/authorization/', 'authorize'],
  ['src/origin', 'proxy'],
  ['src/coalescing/', 'proxy'],
  ['src/routes/', 'proxy'],
  ['src/audit/', 'audit'],
  ['src/metrics/', 'audit'],
  ['src/stores/queue/', 'audit'],
  ['src/middleware/stage.ts', 'audit'],
  ['src/middleware/wait-until.ts', 'audit'],
  ['src/middleware/in-order.ts', FRAMEWORK],
  ['src/app.ts', FRAMEWORK],
  ['bench/workers/', FRAMEWORK],
  ['layers.ts', FRAMEWORK],
  ['src/inspection/', 'inspect'],
  ['src/tracing/', 'traceRequests'],
  // It signs assertions for the origin, and verifies tokens.
  ['jose', 'proxy', /sign(?!ature)/i],
  ['jose', 'authenticate', /verif/i],
  ['hono', FRAMEWORK],
]

const ANY = /(?:)/

/** What comes next is called in here: what is below it on the stack waits, and does not work. */
const DISPATCH = 'dispatch'
const DISPATCHERS: ReadonlySet<string | undefined> = new Set(['hono', 'src/middleware/in-order.ts'])

const STAGE_OF = new Map(Object.entries(STAGE_MODULES).map(([stage, module]) => [module, stage]))
const DIGITS = 2
const SHARE_DIGITS = 4

/** Finds the stage nearest to where the time went. */
export function attribute({ frames, micros }: SampledStack): Attributed {
  let owner: string | undefined
  for (const [depth, frame] of frames.entries()) {
    const { name, module } = frame
    const stage = STAGE_OF.get(module ?? '')
    if (stage !== undefined)
      return { stage, evidence: 'stack', path: frames.slice(0, depth + 1).toReversed(), micros }
    if (name === DISPATCH && DISPATCHERS.has(module))
      return found(owner ?? FRAMEWORK, frames.slice(0, depth + 1))
    owner ??= ownerOf(frame)
  }
  return found(owner ?? withoutOwner(frames), frames)

  function found(stage: string, path: readonly Frame[]): Attributed {
    return { stage, evidence: 'module', path: path.toReversed(), micros }
  }
}

/** Adds up, for each of so many requests: every stage in order, then what is none. */
export function stageTimes(attributed: readonly Attributed[], requests: number): StageTime[] {
  const busy = sum(attributed)
  const each = (us: number) => rounded(us / requests, DIGITS)
  return [...Object.keys(STAGE_MODULES), ...OTHERS].map((stage) => {
    const own = attributed.filter((sample) => sample.stage === stage)
    const isStage = stage in STAGE_MODULES
    return {
      stage,
      micros: each(sum(own)),
      platformMicros: each(sum(own.filter(({ path }) => path.at(-1)?.module === undefined))),
      byModuleMicros: isStage ? each(sum(own.filter(({ evidence }) => evidence === 'module'))) : 0,
      share: busy === 0 ? 0 : rounded(sum(own) / busy, SHARE_DIGITS),
    }
  })
}

function ownerOf({ name, module }: Frame): string | undefined {
  return OWNERS.find(
    ([beginning, , functions = ANY]) => module?.startsWith(beginning) && functions.test(name),
  )?.[1]
}

/** Nothing but the platform itself, or code that no rule names. */
function withoutOwner(frames: readonly Frame[]): string {
  if (frames.some(({ module }) => module !== undefined)) return UNATTRIBUTED
  return frames.some(({ name }) => name === '(garbage collector)') ? GARBAGE : RUNTIME
}

function sum(attributed: readonly Attributed[]): number {
  return attributed.reduce((total, { micros }) => total + micros, 0)
}
