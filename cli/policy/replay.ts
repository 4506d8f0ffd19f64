/** `portcullis policy replay`: decides recorded requests again under another policy. */
import type { Policy } from '../../src/policy/policy.ts'
import { type CommonOptions, workWith } from '../command.ts'
import { REFUSED, usage } from '../failure.ts'
import { createOutput } from '../output.ts'
import { createProgress } from '../progress.ts'
import { requireProject } from '../project.ts'
import { policyFile, projectModule } from './load.ts'
import {
  createPredictor,
  type Predictor,
  type ReplayOptions,
  wholeGrants,
} from './replay-decide.ts'
import {
  eventsOfFile,
  eventsOfGateway,
  type FindGrants,
  type ReplayedEvent,
  type ReplayLine,
  readCallers,
} from './replay-input.ts'
import { createTally, type ReplayReport, reportText, type Tally } from './replay-report.ts'
import { openRevisions } from './revisions.ts'

export interface ReplayCommandOptions extends CommonOptions {
  readonly since?: string
  readonly file?: string
  readonly recorded?: string
  readonly rev?: string
  readonly callers?: string
  readonly limitSamples: number
  readonly failOn?: string
}

/** Prints the report. Sets the exit code to 1 for malformed lines, and for changes of `failOn`. */
export async function replayPolicy(
  named: string | undefined,
  options: ReplayCommandOptions,
  folder: string,
): Promise<void> {
  const { since, file, recorded, rev, callers, limitSamples, failOn, json = false } = options
  if ((since === undefined) === (file === undefined))
    throw usage('name either --since, for the audit trail of the gateway, or --file')
  if (recorded !== undefined && rev !== undefined)
    throw usage('--recorded and --rev both name the policy that recorded the events; use one')
  const root = requireProject(folder)
  const revisions = openRevisions(folder, root)
  try {
    const path = policyFile(named, '[policy]', folder, root)
    const { policyTester } = await projectModule<Pick<ReplayOptions, 'policyTester'>>(
      'testing',
      root,
    )
    const predictor = createPredictor({
      proposed: await revisions.load(path),
      recorded: await recordedPolicy(path),
      policyTester,
    })
    const grantsOf = readCallers(callers)
    const tally = createTally(limitSamples)
    const progress = createProgress(!json)
    const lines =
      file === undefined
        ? eventsOfGateway(workWith(options).gateway, since ?? '')
        : eventsOfFile(file)
    const show = (events: number) => progress.update(`${events} events`)
    await replayLines(lines, { predictor, grantsOf, tally, show })
    progress.end()
    const report = tally.report()
    const output = createOutput(json)
    output.result(report, reportText(report, output.style))
    if (recorded === undefined && rev === undefined && report.unknown > 0)
      output.remark('Name the policy that recorded the events with --rev or --recorded.')
    if (callers === undefined && report.unknown > 0)
      output.remark(
        'Events of earlier versions have no roles: name the roles of callers with --callers.',
      )
    if (report.malformed > 0 || isFailure(report, failOn)) process.exitCode = REFUSED
  } finally {
    revisions.close()
  }

  async function recordedPolicy(path: string): Promise<Policy | undefined> {
    if (rev !== undefined) return revisions.loadAt(rev, path)
    return recorded === undefined ? undefined : revisions.load(recorded, '--recorded')
  }
}

interface ReplayParts {
  readonly predictor: Predictor
  readonly grantsOf: FindGrants
  readonly tally: Tally
  /** Called with the number of events now and then. */
  readonly show?: (events: number) => void
}

/** Decides the events of all lines again, and adds them to the tally. */
export async function replayLines(
  lines: AsyncIterable<readonly ReplayLine[]>,
  { predictor, grantsOf, tally, show }: ReplayParts,
): Promise<void> {
  for await (const some of lines) {
    for (const event of some) {
      if (event === 'malformed') tally.addMalformed()
      if (typeof event === 'string') continue
      if (isOfGateway(event)) {
        tally.addOfGateway()
        continue
      }
      const grants = grantsOf(event.actor) ?? wholeGrants(event.grants)
      const decided = predictor.predict(event, grants)
      tally.add(event, grants, decided instanceof Promise ? await decided : decided)
    }
    show?.(tally.events)
  }
}

/** A call of an operator, or an event without a request: no route of a policy decides it. */
const isOfGateway = ({ method, route }: ReplayedEvent): boolean =>
  method === '' || route?.startsWith('/-/') === true

function isFailure(report: ReplayReport, failOn: string | undefined): boolean {
  const { changes, changed, unknown } = report
  switch (failOn) {
    case 'refused':
      return changes.some(({ from, to }) => from.decision === 'allow' && to.decision === 'deny')
    case 'allowed':
      return changes.some(({ from, to }) => from.decision !== 'allow' && to.decision === 'allow')
    case 'changed':
      return changed > 0
    case 'any':
      return changed + unknown > 0
    default:
      return false
  }
}
