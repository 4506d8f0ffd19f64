/** The folder that `npm start` or `portcullis dev` serves. */
import type { GatewayVars } from './gateway-vars.ts'
import type { Workshop } from './wrangler.ts'

/** Opt-in features of a policy that decide how it is served here. */
export interface PolicyFeatures {
  readonly operators: boolean
  readonly authorizationServer: boolean
  readonly console: boolean
  /** Whether there is a page about the API. */
  readonly openapi: boolean
  /** `ISSUERS`, if the policy has the issuers itself. */
  readonly issuers?: string | undefined
}

/** What to try at a gateway that has started. */
export interface Demo {
  /** Requests, ready to paste. They use the variable `TOKEN`, which the first line sets. */
  readonly examples: string
  /** The role of the subject `alice` in them. */
  readonly role: string
}

/** A database. wrangler creates its tables before the Workers start. */
export interface Migrations {
  readonly database: string
  /** The configuration that binds it, relative to the root. */
  readonly config: string
  /** The folder of the statements, relative to the root. */
  readonly folder: string
}

/** A running gateway, for which examples are printed. */
export interface Started {
  readonly url: string
  readonly vars: GatewayVars
  readonly features: PolicyFeatures
  /** Undefined: the default policy. */
  readonly policyFile: string | undefined
}

export interface Project extends Workshop {
  /** A gateway has health checks and needs an origin; an app has neither. */
  readonly kind: 'gateway' | 'app'
  /** Configurations of the Workers, relative to the root. The first one serves the port. */
  readonly configs: readonly [string, ...string[]]
  /** Undefined: the audit Worker creates its tables itself. */
  readonly migrations: Migrations | undefined
  /** Configuration of a demo origin. Undefined: a server in this process is the demo origin. */
  readonly demoOrigin: string | undefined
  /** Variables in the configuration of the gateway. All other sources override them. */
  readonly vars: Readonly<Record<string, string>>
  /**
   * Returns the features of the policy. `directory` is for generated files. A policy that cannot be
   * read counts as one with all features: wrangler reports its mistake.
   */
  featuresOf(policyFile: string | undefined, directory: string): Promise<PolicyFeatures>
  /**
   * Returns the arguments with which wrangler bundles another policy file. Undefined: the policy is
   * always the project's own.
   */
  readonly policyArguments:
    | ((policyFile: string, directory: string) => readonly string[])
    | undefined
  /** Maps the imports of policies that this process loads to packages of this checkout. */
  readonly mapImports?: () => void
  /** Throws an `Error` if the relation model is invalid, or its JSON file is out of date. */
  checkModel(): Promise<void>
  /** The shell command that prints a token for `--subject` and `--role`. */
  readonly tokenCommand: string
  /** Returns example requests, and the role that they use. */
  demo(started: Started): Promise<Demo>
}
