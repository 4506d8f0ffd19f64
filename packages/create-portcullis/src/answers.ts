/** The answers from which a project is created, and the rules for each of them. */
import { statSync } from 'node:fs'
import { basename } from 'node:path'
import { withSuggestion } from '../../../src/suggestions/did-you-mean.ts'
import { usage } from './failure.ts'
import { type Issuer, PROVIDERS } from './identity-providers.ts'

export const KINDS = ['gateway', 'node', 'middleware', 'mcp'] as const
export type Kind = (typeof KINDS)[number]

export const REDIS_CHOICES = ['local', 'upstash'] as const
export type RedisChoice = (typeof REDIS_CHOICES)[number]

export const PACKAGE_MANAGERS = ['npm', 'pnpm', 'yarn', 'bun'] as const
export type PackageManager = (typeof PACKAGE_MANAGERS)[number]

/** Kinds that run on Node, with the Redis of `REDIS_URL`. */
export const ON_NODE: readonly Kind[] = ['node', 'mcp']

export interface Answers {
  /** As it was given: relative to the current folder, or absolute. */
  readonly directory: string
  readonly kind: Kind
  /** Undefined: development tokens only. */
  readonly issuer: Issuer | undefined
  /** Undefined: the demo origin. Never defined for a middleware. */
  readonly origin: string | undefined
  readonly redis: RedisChoice
  /** For the commands that are printed. */
  readonly packageManager: PackageManager
  /** Whether a Git repository is created, unless the directory is in one. */
  readonly git: boolean
  /** A tarball of the package `portcullis`, which is copied into the project. Undefined: the registry has the package. */
  readonly tarball: string | undefined
}

/** Short enough for `<name>-audit-dead-letters-<environment>` with Cloudflare's limit of 63. */
const MAX_NAME_CHARACTERS = 32
/** npm refuses to install a package into one of the same name. */
const TAKEN = ['portcullis', 'hono', 'zod', 'vitest', 'typescript', 'wrangler', 'node']
const LOOPBACK = /^(127\.\d+\.\d+\.\d+|localhost|\[::1\])$/

/**
 * Returns the name of the package and of its Workers: the last part of the directory, in lower case,
 * with hyphens for other characters. Throws a usage failure if nothing usable remains.
 */
export function nameOf(directory: string): string {
  const name = basename(directory)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+|-+$/g, '')
  if (name === '' || name.length > MAX_NAME_CHARACTERS) {
    throw usage(
      `${basename(directory)}: the last part of the directory is the name of the project, and must have 1 to ${MAX_NAME_CHARACTERS} letters, digits and hyphens, beginning with a letter`,
    )
  }
  if (TAKEN.includes(name) || name === 'js-redis-server') {
    throw usage(`${name} is the name of a package that the project needs; choose another directory`)
  }
  return name
}

/** Returns the directory. Throws a usage failure if no name can be derived from it. */
export function directoryOf(text: string): string {
  const directory = text.trim().replace(/(?<=.)[\\/]+$/, '')
  if (directory === '') throw usage('the directory must not be empty')
  if (directory !== '.') nameOf(directory)
  return directory
}

/** Returns `text` if it is one of `choices`. Throws a usage failure that lists them otherwise. */
export function oneOf<Choice extends string>(
  flag: string,
  text: string,
  choices: readonly Choice[],
): Choice {
  const found = choices.find((choice) => choice === text)
  if (found === undefined)
    throw usage(withSuggestion(`--${flag} must be one of: ${choices.join(', ')}`, text, choices))
  return found
}

export const PROVIDER_NAMES: readonly string[] = ['none', ...PROVIDERS.map(({ name }) => name)]

/** Returns an issuer identifier, which is compared character by character. */
export function issuerOf(text: string): string {
  return httpsUrl('--issuer', text)
}

/** Returns an audience: the identifier of the API at the identity provider. */
export function audienceOf(text: string): string {
  if (text === '' || /\s/.test(text)) throw usage('--audience must be a name without spaces')
  return text
}

/** Returns the path of a tarball of the package. Throws a usage failure if there is no such file. */
export function tarballOf(path: string): string {
  if (/\.(?:tgz|tar\.gz)$/.test(path) && statSync(path, { throwIfNoEntry: false })?.isFile())
    return path
  throw usage(
    `--package: there is no tarball ${path}; \`npm run package\` in a checkout writes one`,
  )
}

/** Returns the URL of the origin without a trailing slash. */
export function originOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw usage('--origin must be an http or https URL, such as https://origin.example.com')
  }
  if (url.search !== '' || url.hash !== '' || url.username !== '') {
    throw usage('--origin must have no credentials, query or fragment')
  }
  return text.replace(/\/+$/, '')
}

function httpsUrl(flag: string, text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isPrivate = url !== undefined && LOOPBACK.test(url.hostname)
  if (
    url === undefined ||
    (url.protocol !== 'https:' && !(isPrivate && url.protocol === 'http:'))
  ) {
    throw usage(`${flag} must be an https URL, such as https://idp.example.com/`)
  }
  if (url.search !== '' || url.hash !== '' || url.username !== '') {
    throw usage(`${flag} must have no credentials, query or fragment`)
  }
  return text
}
