/** `portcullis policy`: checks the policy of a project before it is deployed. */
import { type Command, Option } from '@commander-js/extra-typings'
import { instant, repeated, whole } from '../arguments.ts'
import { offlineCommand, onlineCommand } from '../command.ts'

const CHECK_HELP = `
Loads the policy, with the packages of the project, and lists all mistakes with their places. If there are
none, it lists what is valid, but probably not meant. It makes no call and needs no environment. The
default file is portcullis.config.ts, or .js. A policy in TypeScript needs Node 22.18.

A comment above a route silences a rule there:
  // portcullis-ignore unlimited-route: the origin limits it

Exit codes: 0 no errors, 1 errors, or more warnings than --max-warnings, 2 wrong usage, or a file that
cannot be loaded.`

const FILE = 'the policy (default: portcullis.config.ts, or .js)'

export function addPolicyCommands(program: Command): void {
  const policy = program.command('policy').description('examines the policy of this project')
  offlineCommand(policy, {
    name: 'check',
    does: 'list the mistakes in the policy, and what was probably not meant',
    examples: [
      'portcullis policy check',
      'portcullis policy check examples/books/policy.ts --ignore unlimited-route --max-warnings 0',
      'portcullis policy check --sarif > policy.sarif',
    ],
  })
    .argument('[file]', FILE)
    .option('--sarif', 'print SARIF 2.1.0, for code review')
    .option('--ignore <rule>', 'silence a rule; repeatable', repeated)
    .option('--strict', 'a permission that no role, and no client of CLIENTS, can have is an error')
    .option('--max-warnings <count>', 'largest number of warnings that is no failure', whole)
    .addHelpText('after', CHECK_HELP)
    .action(async (file, options) => {
      const { checkPolicy } = await import('../policy-tools.ts')
      await checkPolicy(file, options, process.cwd())
    })
  addTest(policy)
  addMatrix(policy)
  addDiff(policy)
  addReplay(policy)
}

const TEST_HELP = `
Runs tables of requests and expected decisions through the pipeline of the gateway in this process. It makes
no call, and needs no test runner. Without files, it searches the current folder for *.policy-test.ts, .mts, .js
and .mjs. The default export of such a file is its table:
  export default { policy, rows: [{ request: 'GET /orders', expect: 'missing_token' }] }

Exit codes: 0 all rows are decided as expected, 1 other decisions, a coverage below --min-coverage, or a policy
with mistakes, 2 wrong usage, or a file that cannot be loaded.`

function addTest(policy: Command): void {
  offlineCommand(policy, {
    name: 'test',
    does: 'compare the decisions about requests with the expected ones',
    examples: [
      'portcullis policy test',
      'portcullis policy test examples/testing --coverage',
      'portcullis policy test orders.policy-test.ts --min-coverage 90 --json',
    ],
  })
    .argument('[files...]', 'files with tables, or folders to search (default: this folder)')
    .option('--coverage', 'list how many rows reached each route and role')
    .option(
      '--min-coverage <percent>',
      'smallest share of the routes, and of the roles, that a row must reach',
      whole,
    )
    .addHelpText('after', TEST_HELP)
    .action(async (files, options) => {
      const { testPolicies } = await import('../policy-tools.ts')
      await testPolicies(files, options, process.cwd())
    })
}

const MATRIX_HELP = `
Rows are routes. Columns are anonymous callers, callers without a role, and the roles. The authorizer of the
gateway decides each cell. Scopes are not considered: they grant or narrow by the settings of the issuer.

Exit codes: 0 done, 1 the policy has mistakes, 2 wrong usage, or a file that cannot be loaded.`

function addMatrix(policy: Command): void {
  offlineCommand(policy, {
    name: 'matrix',
    does: 'show which roles may call which routes',
    examples: [
      'portcullis policy matrix',
      'portcullis policy matrix examples/books/policy.ts --format markdown',
      'portcullis policy matrix --format html > matrix.html',
    ],
  })
    .argument('[file]', FILE)
    .addOption(
      new Option('--format <name>', 'output format')
        .choices(['table', 'markdown', 'html', 'json'])
        .default('table'),
    )
    .option(
      '--wide',
      'names of all callers and whole limits on a terminal; a pipe always gets them',
    )
    .addHelpText('after', MATRIX_HELP)
    .action(async (file, options) => {
      const { showMatrix } = await import('../policy-tools.ts')
      await showMatrix(file, options, process.cwd())
    })
}

const DIFF_HELP = `
A policy is a file, or revision:path for a file in the Git repository, with a path from its root or from ./.
Both policies are run, with the packages that the project has now: compare only revisions that you trust.

Each change is widening (somebody may do more), narrowing (somebody may do less) or neutral. A change in a
direction that cannot be known counts as widening. Functions, refinements and transforms of schemas are not
compared.

Exit codes: 0 done, 1 a change of the class of --fail-on, or a policy with mistakes, 2 wrong usage, or a file
that cannot be loaded.`

function addDiff(policy: Command): void {
  offlineCommand(policy, {
    name: 'diff',
    does: 'show which callers gain or lose what by a change of the policy',
    examples: [
      'portcullis policy diff main:portcullis.config.ts portcullis.config.ts',
      'portcullis policy diff --rev HEAD~1 --fail-on widening',
      'portcullis policy diff --rev origin/main --format markdown',
    ],
  })
    .argument('[policies...]', 'two policies; or one, or none, with --rev')
    .option('--rev <revision>', 'compare the policy with its version in this revision')
    .addOption(
      new Option('--format <name>', 'output format').choices(['text', 'markdown']).default('text'),
    )
    .addOption(
      new Option('--fail-on <class>', 'exit with 1 if there is a change of this class').choices([
        'widening',
        'narrowing',
        'any',
      ]),
    )
    .addHelpText('after', DIFF_HELP)
    .action(async (policies, options) => {
      const { comparePolicies } = await import('../policy-tools.ts')
      await comparePolicies(policies, options, process.cwd())
    })
}

const REPLAY_HELP = `
Decides the requests of recorded audit events again: the route table, whether a credential is required, and
the permission. Limits, tokens, relations, inputs and bodies cannot be decided again. What an event does not
show is reported as unknown.

--file reads events as lines of JSON: from audit tail --json, the log, or an export of the audit trail.
--callers is a JSON file: [{ "subject": "alice", "roles": ["reader"], "scopes": [] }]. An entry can have an
issuer and a client as well; the first one that matches counts.

Exit codes: 0 done, 1 a change of the class of --fail-on, malformed lines, or a policy with mistakes, 2 wrong
usage, or a file that cannot be read, 3 the gateway did not answer.`

function addReplay(policy: Command): void {
  onlineCommand(policy, {
    name: 'replay',
    does: 'show which recorded decisions a change of the policy would change',
    examples: [
      'portcullis policy replay --since 7d --rev main --callers callers.json',
      'portcullis policy replay new.config.ts --recorded portcullis.config.ts --file events.ndjson',
      'portcullis policy replay --rev main --file - --fail-on refused < events.ndjson',
    ],
  })
    .argument('[policy]', FILE)
    .option(
      '--since <time>',
      'events of the gateway from 2026-11-20T16:00:00Z, or 7d (ago)',
      instant,
    )
    .option('--file <file>', 'events in a file, or on standard input for -')
    .option('--rev <revision>', 'the policy of this revision recorded the events')
    .option('--recorded <policy>', 'this policy recorded the events: a file, or revision:path')
    .option('--callers <file>', 'roles and scopes of callers')
    .option('--limit-samples <count>', 'largest number of requests to name for a change', whole, 3)
    .addOption(
      new Option('--fail-on <class>', 'exit with 1 if a decision changes so').choices([
        'refused',
        'allowed',
        'changed',
        'any',
      ]),
    )
    .addHelpText('after', REPLAY_HELP)
    .action(async (file, options) => {
      const { replayPolicy } = await import('../policy-tools.ts')
      await replayPolicy(file, options, process.cwd())
    })
}
