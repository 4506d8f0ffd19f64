/** Requests the answers that the flags do not contain. */
import { autocomplete, intro, isCancel, select, text } from '@clack/prompts'
import {
  audienceOf,
  directoryOf,
  issuerOf,
  type Kind,
  ON_NODE,
  originOf,
  type RedisChoice,
} from './answers.ts'
import { CANCELLED, Failure } from './failure.ts'
import { PROVIDERS } from './identity-providers.ts'
import type { Flags } from './options.ts'

/** Shows the questions on the terminal. Throws a failure if the user cancels. */
export async function ask(flags: Flags): Promise<Flags> {
  intro('Portcullis')
  const directory =
    flags.directory ?? (await line('Directory', 'my-gateway', directoryOf, 'my-gateway'))
  const kind =
    flags.kind ??
    (await choice<Kind>('What should it be?', [
      { value: 'gateway', label: 'Gateway', hint: 'a Worker of its own in front of your API' },
      { value: 'node', label: 'Gateway on Node', hint: 'with Docker, compose and systemd' },
      { value: 'middleware', label: 'Middleware', hint: 'a Hono app with guarded routes' },
      { value: 'mcp', label: 'MCP server', hint: 'a gateway on Node in front of it' },
    ]))
  const isNamed = flags.issuer !== undefined || flags.audience !== undefined
  const idp = flags.idp ?? (isNamed ? 'other' : await providerChoice())
  const provider = PROVIDERS.find(({ name }) => name === idp)
  const asksIssuer = provider !== undefined && !provider.hasIssuer && flags.issuer === undefined
  const issuer = asksIssuer ? await line('Issuer', provider.issuer, issuerOf) : flags.issuer
  const asksAudience =
    provider !== undefined && !provider.hasAudience && flags.audience === undefined
  const audience = asksAudience
    ? await line('Audience', provider.audience, audienceOf)
    : flags.audience
  const hint =
    kind === 'mcp'
      ? 'URL of your MCP server without its path; empty for an example'
      : 'URL of your API; empty for a demo'
  const asksOrigin = kind !== 'middleware' && flags.origin === undefined
  const origin = asksOrigin ? await line('Origin', hint, optional(originOf), '') : flags.origin
  const redis =
    flags.redis ??
    (ON_NODE.includes(kind) ? 'local' : undefined) ??
    (await choice<RedisChoice>('Redis in development', [
      { value: 'local', label: 'Local', hint: 'on this machine, no account needed' },
      { value: 'upstash', label: 'Upstash', hint: 'a database of yours' },
    ]))
  return {
    ...flags,
    directory,
    kind,
    idp,
    ...(issuer !== undefined && { issuer }),
    ...(audience !== undefined && { audience }),
    ...(origin && { origin }),
    redis,
  }
}

/** Longer lists scroll. */
const MAX_CHOICES_SHOWN = 10

const PROVIDER_CHOICES = [
  { value: 'none', label: 'Later', hint: 'only development tokens for now' },
  ...PROVIDERS.map(({ name, title }) => ({ value: name, label: title })),
]

const optional = (parse: (answer: string) => string) => (answer: string) =>
  answer === '' ? '' : parse(answer)

/** Repeats a question until `parse` accepts the line. An empty one means `defaultValue`, if given. */
async function line(
  message: string,
  placeholder: string,
  parse: (answer: string) => string,
  defaultValue?: string,
): Promise<string> {
  const answer = await text({
    message,
    placeholder,
    ...(defaultValue !== undefined && { defaultValue }),
    validate(value = '') {
      if (value === '' && defaultValue !== undefined) return undefined
      try {
        parse(value)
        return undefined
      } catch (error) {
        return (error as Error).message
      }
    },
  })
  return parse(answered(answer))
}

/** Typed letters filter the providers. */
async function providerChoice(): Promise<string> {
  const options = [...PROVIDER_CHOICES]
  const shown = { message: 'Identity provider', options, maxItems: MAX_CHOICES_SHOWN }
  return answered(await autocomplete<string>(shown))
}

async function choice<Value extends string>(
  message: string,
  options: readonly { value: Value; label: string; hint?: string }[],
): Promise<Value> {
  const shown = { message, options: [...options], maxItems: MAX_CHOICES_SHOWN }
  return answered(await select<string>(shown)) as Value
}

function answered(answer: string | symbol): string {
  if (isCancel(answer)) throw new Failure(CANCELLED, 'cancelled', 'cancelled; nothing was written')
  return answer as string
}
