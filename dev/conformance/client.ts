/** The part of the suite's API that runs plans. */
import { setTimeout as delay } from 'node:timers/promises'

/** A module of a plan, with the variant for which it is in the plan. */
export interface PlannedModule {
  readonly testModule: string
  readonly variant: Readonly<Record<string, string>>
}

/** What the suite reports of a module that runs. */
export interface ModuleState {
  readonly status: string
  readonly result: string | null
}

/** An entry of the log of a module: a check, a request, or a message. */
export interface LogEntry {
  readonly src: string
  readonly msg: string
  readonly result?: string
  readonly requirements?: readonly string[]
  readonly upload?: string
}

/** What the browser of a module is to do. */
export interface BrowserWork {
  readonly urls: readonly string[]
}

export type SuiteClient = ReturnType<typeof createSuiteClient>

export function createSuiteClient(base: string) {
  async function call<Result>(
    method: string,
    path: string,
    query: Readonly<Record<string, string>> = {},
    body?: string,
  ): Promise<Result> {
    const url = new URL(`/api/${path}?${new URLSearchParams(query)}`, base)
    const headers = { 'Content-Type': 'application/json' }
    const response = await fetch(url, { method, headers, ...(body !== undefined && { body }) })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${url.pathname}: ${response.status} ${text}`)
    return JSON.parse(text) as Result
  }

  return {
    /** The version of the suite. */
    version: () => call<{ readonly version: string }>('GET', 'server'),
    /** Creates a plan. Returns its id and its modules. */
    createPlan: (planName: string, variant: object, configuration: object) =>
      call<{ readonly id: string; readonly modules: readonly PlannedModule[] }>(
        'POST',
        'plan',
        { planName, variant: JSON.stringify(variant) },
        JSON.stringify(configuration),
      ),
    /** Creates a module of a plan, which starts by itself. Returns its id. */
    createModule: (plan: string, { testModule, variant }: PlannedModule) =>
      call<{ readonly id: string }>('POST', 'runner', {
        ...{ test: testModule, plan, variant: JSON.stringify(variant) },
      }),
    start: (id: string) => call<unknown>('POST', `runner/${id}`),
    state: (id: string) => call<ModuleState>('GET', `info/${id}`),
    log: (id: string) => call<readonly LogEntry[]>('GET', `log/${id}`),
    browser: (id: string) =>
      call<{ readonly browser: BrowserWork }>('GET', `runner/${id}`).then(({ browser }) => browser),
    /** Waits until the module has one of the states, and returns its state. */
    async waitFor(id: string, states: readonly string[], seconds: number): Promise<ModuleState> {
      for (let waited = 0; ; waited++) {
        const state = await call<ModuleState>('GET', `info/${id}`)
        if (states.includes(state.status) || waited >= seconds * 4) return state
        await delay(250)
      }
    },
    /** Ends a module that still runs. */
    cancel: (id: string) => call<unknown>('DELETE', `runner/${id}`).catch(() => undefined),
  }
}
