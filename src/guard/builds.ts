/** Builds the guards of an app: at once from options, or for each environment from a function. */
import type { Hono } from 'hono'
import { Misconfigured } from '../errors.ts'
import { refuseAll } from '../gateway/refuse-all.ts'
import type { Declaration, DeclarationOf } from './declaration.ts'
import { MAX_BUILT } from './environment.ts'
import { createGuarded, type Framework, type Guarded } from './guarded.ts'
import type { GuardOptions } from './options.ts'
import { OPTIONS } from './schema.ts'

/** The guards, or the app that refuses every request because the options are wrong. */
export type Outcome = { readonly guarded: Guarded } | { readonly refusal: Hono }

export type Builds = ReturnType<typeof createBuilds>

/** Throws one `Misconfigured` with all mistakes, unless the options are a function of the environment. */
export function createBuilds<Bindings extends object>(
  options: GuardOptions | ((env: Bindings) => GuardOptions),
  frameworkOf: (declarationOf: DeclarationOf) => Framework,
) {
  const declarations = new Map<object, Declaration>()
  const declarationOf: DeclarationOf = (handler) => declarations.get(handler)
  const framework = frameworkOf(declarationOf)
  const create = (given: GuardOptions) => createGuarded(given, declarationOf, framework)
  const fixed = typeof options === 'function' ? undefined : create(options)
  /** The newest first, and no fewer than `onceForEach` keeps. */
  const built: Guarded[] = fixed === undefined ? [] : [fixed]

  return {
    /** Identifies the guard, for whatever environment it is built. */
    declarationOf,
    /** Builds the guards for an environment. Returns the same ones if the options are fixed. */
    build(env: object): Outcome {
      if (fixed !== undefined) return { guarded: fixed }
      try {
        const guarded = create(optionsFor(options, env))
        for (const declaration of declarations.values()) guarded.declare(declaration)
        built.unshift(guarded)
        built.length = Math.min(built.length, MAX_BUILT)
        return { guarded }
      } catch (error) {
        return { refusal: refuseAll(error) }
      }
    },
    /**
     * Adds the guard of a route, also to the guards that are built already. Throws `Misconfigured` if their
     * options do not have its limits.
     */
    add(handler: object, declaration: Declaration): void {
      for (const guarded of built) guarded.declare(declaration)
      declarations.set(handler, declaration)
    },
  }
}

/** Returns the options for an environment. Throws `Misconfigured` if the function throws. */
function optionsFor<Bindings extends object>(
  options: GuardOptions | ((env: Bindings) => GuardOptions),
  env: object,
): GuardOptions {
  if (typeof options !== 'function') return options
  try {
    return options(env as Bindings)
  } catch (error) {
    const { name, message } = error instanceof Error ? error : { name: 'Error', message: 'unknown' }
    throw new Misconfigured(OPTIONS, [`the function threw ${name}: ${message}`])
  }
}
