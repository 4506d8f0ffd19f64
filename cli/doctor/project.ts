/** Checks the files of a project for wrangler. */
import { CREATE_COMMAND } from '../../dev/start/main-config.ts'
import {
  type Environment,
  environmentOf,
  isId,
  isOfApp,
  PRODUCTION,
  requireName,
} from '../deploy/environment.ts'
import { GATEWAY_FILE, namesIn, readProject, tableOf, tablesOf } from '../deploy/project.ts'
import { Failure } from '../failure.ts'
import { counted } from '../text.ts'
import { type Finding, mistake, notChecked, ok, warning } from './finding.ts'

/** The date with which this version is tested. */
export const TESTED_DATE = '2026-11-17'
const DATE = /^\d{4}-\d\d-\d\d$/
const SECRETS = [
  'UPSTASH_REDIS_REST_TOKEN',
  'SIGNING_KEYS',
  'ISSUER_CLIENTS',
  'AUDIT_ADDRESS_KEY',
  'OTLP_HEADERS',
]

export interface CheckedProject {
  readonly findings: readonly Finding[]
  /** Undefined if there are no files, or if they are not valid. */
  readonly environment: Environment | undefined
}

/**
 * Checks `wrangler.toml` and the other Workers in `folder` for the environment `name`. Throws a usage
 * failure for an impossible name. `today` is such as `2026-11-17`.
 */
export function checkProject(
  folder: string | undefined,
  name: string,
  today: string,
): CheckedProject {
  requireName(name)
  if (folder === undefined) {
    const remedy = 'Run the command in the folder of your gateway.'
    const findings = [notChecked(GATEWAY_FILE, 'no project in this folder or above', remedy)]
    return { findings, environment: undefined }
  }
  try {
    const environment = environmentOf(readProject(folder), name)
    return { findings: findingsOf(environment, today), environment }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const remedy = `Correct ${GATEWAY_FILE}, or create a project: ${CREATE_COMMAND}.`
    return { findings: [mistake(GATEWAY_FILE, error.message, remedy)], environment: undefined }
  }
}

function findingsOf(environment: Environment, today: string): Finding[] {
  const findings = [
    ...dateFindings(environment, today),
    // The bindings of an app are its own.
    ...(isOfApp(environment)
      ? []
      : [...queueFindings(environment), ...databaseFindings(environment)]),
    ...secretFindings(environment),
  ]
  if (findings.length > 0) return findings
  const count = environment.workers.length
  return [
    ok(GATEWAY_FILE, `${counted(count, 'Worker')}, bindings and compatibility dates as expected`),
  ]
}

function dateFindings({ workers }: Environment, today: string): Finding[] {
  return workers.flatMap(({ file, table }) => {
    const date = String(table.compatibility_date ?? '').slice(0, TESTED_DATE.length)
    const remedy = `Set compatibility_date to "${TESTED_DATE}", with which this version is tested.`
    if (!DATE.test(date)) return [mistake(file, 'has no valid compatibility_date', remedy)]
    if (date > today) {
      return [mistake(file, `compatibility_date ${date} is in the future`, remedy)]
    }
    const isOld = date < TESTED_DATE
    return isOld ? [warning(file, `compatibility_date ${date} is not tested`, remedy)] : []
  })
}

function queueFindings({ workers }: Environment): Finding[] {
  const gateway = workers.at(-1)
  const file = gateway?.file ?? GATEWAY_FILE
  const producers = tablesOf(tableOf(gateway?.table.queues).producers)
  const names = producers.map(({ binding }) => String(binding))
  const own = producers.find(({ binding }) => binding === 'AUDIT_QUEUE')
  if (own === undefined) {
    const remedy =
      'Name the binding of the producer AUDIT_QUEUE; without it, audit events go to the log only.'
    return names.length > 0
      ? [mistake(file, `binds a queue as ${names.join(', ')}, not as AUDIT_QUEUE`, remedy)]
      : [warning(file, 'binds no queue as AUDIT_QUEUE', remedy)]
  }
  const consumers = workers.flatMap(({ table }) =>
    namesIn(tableOf(table.queues).consumers, 'queue'),
  )
  if (consumers.includes(String(own.queue))) return []
  const seen = `no Worker of this project consumes the queue ${String(own.queue)}`
  const remedy = 'Add the audit Worker as workers/audit.toml, with this queue as its consumer.'
  return [warning(file, seen, remedy)]
}

function databaseFindings({ name, workers }: Environment): Finding[] {
  const databases = workers.flatMap(({ file, role, table }) =>
    tablesOf(table.d1_databases).map((database) => ({ file, role, database })),
  )
  const wrong = databases.filter(({ database }) => database.binding !== 'AUDIT_DB')
  const ours = databases.filter(({ database }) => database.binding === 'AUDIT_DB')
  const gateway = ours.find(({ role }) => role === 'gateway')
  if (gateway === undefined) {
    const file = workers.at(-1)?.file ?? GATEWAY_FILE
    const remedy =
      'Bind the database of the audit trail as AUDIT_DB; without it, operators cannot read it.'
    const other = wrong.find(({ role }) => role === 'gateway')
    return other === undefined
      ? [warning(file, 'binds no database as AUDIT_DB', remedy)]
      : [
          mistake(
            file,
            `binds a database as ${String(other.database.binding)}, not as AUDIT_DB`,
            remedy,
          ),
        ]
  }
  const { database_name: expected, database_id: id } = gateway.database
  const findings = ours
    .filter(({ database }) => database.database_name !== expected)
    .map(({ file, database }) =>
      mistake(
        file,
        `AUDIT_DB is ${String(database.database_name)}, but ${String(expected)} in ${gateway.file}`,
        'Bind the same database in both files.',
      ),
    )
  if (name === PRODUCTION && !isId(id)) {
    const remedy =
      'Deploy with `portcullis deploy`, which creates it, or write the id of the database.'
    findings.push(warning(gateway.file, `AUDIT_DB has no database_id yet`, remedy))
  }
  return findings
}

function secretFindings({ workers }: Environment): Finding[] {
  return workers.flatMap(({ file, table }) =>
    Object.keys(tableOf(table.vars))
      .filter((name) => SECRETS.includes(name))
      .map((name) =>
        warning(
          file,
          `${name} is a secret, but is in [vars]`,
          'Remove it from the file, replace it with a new value, and deploy that with `portcullis deploy`.',
        ),
      ),
  )
}
