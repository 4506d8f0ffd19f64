/** Attributes the time of a CPU profile to stages of the pipeline. No I/O. */
import { rounded, sumOf } from '../measure/statistics.ts'
import type { Frame, SampledStack } from './summary.ts'

/** How a sample was attributed to a stage. */
export type Evidence = 'stack' | 'module'

export interface Attributed {
  /** A stage of `STAGE_MODULES`, or one of `OTHERS`. */
  readonly stage: string
  readonly evidence: Evidence
  /** Frames from the stage's own function, or the entry point, to the top of the stack. */
  readonly path: readonly Frame[]
  readonly micros: number
}

export interface StageTime {
  readonly stage: string
  /** Microseconds per request. */
  readonly micros: number
  /** The part in functions of the platform, such as `fetch`. */
  readonly platformMicros: number
  /** The part that was attributed only by module, after an `await`. */
  readonly byModuleMicros: number
  /** Share of the time in which the isolate was busy. */
  readonly share: number
}

/** Stages of `create-gateway.ts` and `guards.ts` in `src/gateway`, in their order, with their files. */
export const STAGE_MODULES: Readonly<Record<string, string>> = {
  requestId: 'src/middleware/request-id.ts',
  drainOnRefusal: 'src/middleware/drain-on-refusal.ts',
  traceRequests: 'src/features/otlp/trace-requests.ts',
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

/** Categories that are not stages. */
const FRAMEWORK = 'framework'
const UNATTRIBUTED = 'unattributed'
const GARBAGE = 'garbage collection'
const RUNTIME = 'runtime'
export const OTHERS = [FRAMEWORK, UNATTRIBUTED, GARBAGE, RUNTIME] as const

/**
 * The stage of a module, for stacks without a stage: after an `await` the platform calls a function
 * without its callers. The first matching rule applies.
 */
const OWNERS: readonly (readonly [beginning: string, stage: string, functions?: RegExp])[] = [
  ['src/access/admission/', 'admit'],
  ['src/access/revocation/', 'admit'],
  ['src/access/abuse/', 'admit'],
  ['src/redis/', 'admit'],
  ['src/middleware/rate-limit-headers.ts', 'admit'],
  ['@upstash/', 'admit'],
  ['src/access/tokens/assertion.ts', 'proxy'],
  ['src/access/tokens/', 'authenticate'],
  ['src/access/', 'authorize'],
  ['src/origin', 'proxy'],
  ['src/routes/', 'proxy'],
  ['src/audit/', 'audit'],
  ['src/observability/metrics/', 'audit'],
  ['src/middleware/in-order.ts', FRAMEWORK],
  ['src/gateway/create-gateway.ts', FRAMEWORK],
  ['bench/workers/', FRAMEWORK],
  ['layers.ts', FRAMEWORK],
  ['src/inspection/', 'inspect'],
  ['src/features/signatures/', 'inspect'],
  ['src/features/otlp/', 'traceRequests'],
  // `jose` signs assertions for the origin, and verifies tokens.
  ['jose', 'proxy', /sign(?!ature)/i],
  ['jose', 'authenticate', /verif/i],
  ['hono', FRAMEWORK],
]

const ANY = /(?:)/

/** The function that calls the next stage. Frames below it are waiting, not working. */
const DISPATCH = 'dispatch'
const DISPATCHERS: ReadonlySet<string | undefined> = new Set(['hono', 'src/middleware/in-order.ts'])

const STAGE_OF = new Map(Object.entries(STAGE_MODULES).map(([stage, module]) => [module, stage]))
const DIGITS = 2
const SHARE_DIGITS = 4

/** Finds the stage closest to the top of the stack. */
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

/** Returns the time per request of every stage in order, then of the other categories. */
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

/** Returns the category of a stack with only platform code, or code without a rule. */
function withoutOwner(frames: readonly Frame[]): string {
  if (frames.some(({ module }) => module !== undefined)) return UNATTRIBUTED
  return frames.some(({ name }) => name === '(garbage collector)') ? GARBAGE : RUNTIME
}

const sum = (attributed: readonly Attributed[]): number => sumOf(attributed, ({ micros }) => micros)
