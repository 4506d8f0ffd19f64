/** Parses the command line. */
import { parseArgs } from 'node:util'
import {
  audienceOf,
  directoryOf,
  issuerOf,
  KINDS,
  type Kind,
  ON_NODE,
  oneOf,
  originOf,
  PACKAGE_MANAGERS,
  type PackageManager,
  PROVIDER_NAMES,
  REDIS_CHOICES,
  type RedisChoice,
  tarballOf,
} from './answers.ts'
import { usage } from './failure.ts'

const MAX_LINE = 96

/** Returns the words with commas, in indented lines. */
function wrapped(words: readonly string[]): string {
  const lines: string[] = []
  for (const word of words) {
    const last = lines.at(-1)
    const extended = last === undefined ? undefined : `${last}, ${word}`
    if (extended === undefined || extended.length > MAX_LINE) lines.push(`  ${word}`)
    else lines[lines.length - 1] = extended
  }
  return lines.join(',\n')
}

export const HELP = `npm create portcullis@latest [-- directory] [-- options]
create-portcullis [directory] [options]

Creates a project that guards an API with Portcullis. Without --yes, it asks for what is missing.

  --kind <kind>          gateway: a Worker of its own in front of your API (default)
                         node: the same on Node, with files for Docker, compose and systemd
                         middleware: a Hono app with guarded routes
                         mcp: a gateway on Node in front of an MCP server, with an example of one
  --idp <provider>       identity provider: a name from the list below (default: none, so that only
                         development tokens are accepted)
  --issuer <url>         issuer identifier of the identity provider
  --audience <name>      identifier of your API at the identity provider
  --origin <url>         your API behind the gateway (default: a demo origin)
  --redis <redis>        Redis in development of a Worker: local (default) or upstash; deployed Workers
                         use Upstash
  --pm <manager>         npm, pnpm, yarn or bun, for the commands that are printed (default: the one that
                         runs this command)
  --package <file>       tarball of portcullis, which is copied into the project (default: the registry has
                         the package); \`npm run create\` in a checkout of Portcullis sets it
  --no-git               create no Git repository
  -y, --yes              use the defaults for what is missing
  --json                 print the result as JSON, errors too; implies --yes
  -h, --help
  -v, --version

With --redis upstash, UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN are read from the environment
and stored in .dev.vars, which git ignores.

Identity providers:
${wrapped(PROVIDER_NAMES)}

Exit codes: 0 done, 1 the project cannot be written, 2 wrong usage, 130 cancelled.`

/** The flags that were given. Undefined: a question decides, or the default. */
export interface Flags {
  readonly directory?: string
  readonly kind?: Kind
  /** A provider, or `none`. */
  readonly idp?: string
  readonly issuer?: string
  readonly audience?: string
  readonly origin?: string
  readonly redis?: RedisChoice
  readonly packageManager?: PackageManager
  readonly git?: boolean
  readonly tarball?: string
}

export interface Options {
  readonly action: 'create' | 'help' | 'version'
  /** Whether questions are suppressed. */
  readonly yes: boolean
  readonly json: boolean
  readonly flags: Flags
}

/** Parses the arguments. Throws a usage failure for an unknown flag or an invalid value. */
export function parseOptions(argv: readonly string[]): Options {
  const { values, positionals } = parsed(argv)
  const { help = false, version = false, json = false, yes = false } = values
  const action = help ? 'help' : version ? 'version' : 'create'
  if (action !== 'create') return { action, yes, json, flags: {} }
  const [directory, ...others] = positionals
  if (others.length > 0) throw usage(`one directory is expected, not ${positionals.length}`)
  const flags: Flags = {
    ...(directory !== undefined && { directory: directoryOf(directory) }),
    ...(values.kind !== undefined && { kind: oneOf('kind', values.kind, KINDS) }),
    ...(values.idp !== undefined && { idp: oneOf('idp', values.idp, PROVIDER_NAMES) }),
    ...(values.issuer !== undefined && { issuer: issuerOf(values.issuer) }),
    ...(values.audience !== undefined && { audience: audienceOf(values.audience) }),
    ...(values.origin !== undefined && { origin: originOf(values.origin) }),
    ...(values.pm !== undefined && {
      packageManager: oneOf('pm', values.pm, PACKAGE_MANAGERS),
    }),
    ...(values.git !== undefined && { git: values.git }),
    ...(values.package !== undefined && { tarball: tarballOf(values.package) }),
    ...(values.redis !== undefined && { redis: oneOf('redis', values.redis, REDIS_CHOICES) }),
  }
  checkTogether(flags)
  return { action, yes: yes || json, json, flags }
}

function parsed(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      allowPositionals: true,
      allowNegative: true,
      options: {
        kind: { type: 'string' },
        idp: { type: 'string' },
        issuer: { type: 'string' },
        audience: { type: 'string' },
        origin: { type: 'string' },
        redis: { type: 'string' },
        pm: { type: 'string' },
        git: { type: 'boolean' },
        package: { type: 'string' },
        yes: { type: 'boolean', short: 'y' },
        json: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
        version: { type: 'boolean', short: 'v' },
      },
    })
  } catch (error) {
    const [problem = ''] = (error as Error).message.split(/\.(?: |\n)|\n/)
    throw usage(`${problem}; see --help`)
  }
}

/** Throws a usage failure for flags that contradict each other. */
function checkTogether({ kind, idp, issuer, audience, origin, redis }: Flags): void {
  if (kind === 'middleware' && origin !== undefined) {
    throw usage('--origin is for a gateway: the routes of a middleware are in the app itself')
  }
  if (kind !== undefined && ON_NODE.includes(kind) && redis === 'upstash') {
    throw usage('--redis upstash is for Workers: a gateway on Node uses the Redis of REDIS_URL')
  }
  if (idp === 'none' && (issuer !== undefined || audience !== undefined)) {
    throw usage('--idp none excludes --issuer and --audience')
  }
}
