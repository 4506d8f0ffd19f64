/** Runs the modules of a plan one after the other, and reads their verdicts. */
import type { LogEntry, ModuleState, PlannedModule, SuiteClient } from './client.ts'

const MODULE_SECONDS = 120

/** A plan of the suite with everything that it needs of this machine. */
export interface Plan {
  /** The suite's name for the plan. */
  readonly name: string
  readonly title: string
  readonly variant: Readonly<Record<string, string>>
  /** The configuration of the plan, as JSON. */
  readonly configuration: object
  /** Whether a module applies to us. Default: all modules of the plan. */
  readonly includes?: (module: PlannedModule) => boolean
  /** Does what the suite waits for, while a module runs. Default: nothing. */
  readonly act?: (run: ModuleRun) => Promise<void>
  close(): Promise<void>
}

/** A module that waits for our part. */
export interface ModuleRun {
  readonly id: string
  readonly module: PlannedModule
  /** Returns the state of the module now. */
  state(): Promise<ModuleState>
  log(): Promise<readonly LogEntry[]>
}

/** The verdict on one module. */
export interface Verdict {
  readonly module: string
  /** `PASSED`, `WARNING`, `FAILED`, `REVIEW`, `SKIPPED`, or the state in which it hangs. */
  readonly verdict: string
  /** What was not as demanded: the check, what it found, and the section of the specification. */
  readonly reasons: readonly string[]
}

/** Runs a plan. `onVerdict` gets each verdict at once. */
export async function runPlan(
  client: SuiteClient,
  plan: Plan,
  selects: (name: string) => boolean,
  onVerdict: (verdict: Verdict) => void,
): Promise<readonly Verdict[]> {
  const { id, modules } = await client.createPlan(plan.name, plan.variant, plan.configuration)
  const verdicts: Verdict[] = []
  for (const module of modules) {
    if (!selects(module.testModule) || plan.includes?.(module) === false) continue
    const verdict = await runModule(client, plan, id, module)
    verdicts.push(verdict)
    onVerdict(verdict)
  }
  return verdicts
}

async function runModule(
  client: SuiteClient,
  plan: Plan,
  planId: string,
  module: PlannedModule,
): Promise<Verdict> {
  const { id } = await client.createModule(planId, module)
  const begun = await client.waitFor(id, ['CONFIGURED', 'WAITING', 'FINISHED', 'INTERRUPTED'], 60)
  if (begun.status === 'CONFIGURED') await client.start(id)
  await client.waitFor(id, ['WAITING', 'FINISHED', 'INTERRUPTED'], MODULE_SECONDS)
  await plan.act?.({ id, module, state: () => client.state(id), log: () => client.log(id) })
  const { status, result } = await client.waitFor(id, ['FINISHED', 'INTERRUPTED'], MODULE_SECONDS)
  const entries = await client.log(id)
  if (status !== 'FINISHED') await client.cancel(id)
  const verdict = status === 'FINISHED' ? (result ?? 'UNKNOWN') : status
  return { module: module.testModule, verdict, reasons: reasonsIn(entries) }
}

const NOTABLE = new Set(['FAILURE', 'WARNING'])

function reasonsIn(entries: readonly LogEntry[]): string[] {
  return entries
    .filter(({ result }) => NOTABLE.has(result ?? ''))
    .map(({ src, msg, requirements = [] }) => `${src}: ${msg} ${requirements.join(', ')}`.trim())
}
