/** Mistakes in what a user configures, as data. They become text where they are shown. */
import { toDotPath } from 'zod/v4/core'

/** What is wrong. The first line has the codes of schemas; the others are of checks between values. */
export type MistakeCode =
  | 'invalid_element'
  | 'invalid_format'
  | 'invalid_key'
  | 'invalid_type'
  | 'invalid_union'
  | 'invalid_value'
  | 'not_multiple_of'
  | 'too_big'
  | 'too_small'
  | 'unrecognized_keys'
  /** A value that is required, or that another one requires. */
  | 'missing'
  /** Values that exclude each other. */
  | 'conflict'
  | 'duplicate'
  | 'missing_feature'
  /** The runtime cannot do it. */
  | 'unsupported'
  | 'unused_setting'
  | 'unknown_limit'
  | 'unknown_origin'
  | 'unknown_parameter'
  | 'unknown_plan'
  | 'unknown_relation'
  | 'unknown_route'
  | 'unknown_type'
  | 'invalid_model'
  | 'invalid_relation'
  | 'unreachable_route'
  | 'reserved_path'
  | 'confusable_route'
  | 'dropped_keys'

export interface Mistake {
  readonly code: MistakeCode
  /** Path of the value: `['routes', 3, 'limits']`, or `['PUBLIC_URL']`. Empty: the whole. */
  readonly path: readonly (string | number)[]
  /** What is wrong, and often what to do. Never a value that may be secret. */
  readonly message: string
  /** The name that is wrong. */
  readonly given?: string
  /** The names that are possible in its place. */
  readonly known?: readonly string[]
  /** The route that the mistake is in. */
  readonly route?: MistakenRoute
}

export interface MistakenRoute {
  readonly method: string
  readonly path: string
  readonly host?: string | undefined
}

export const mistakeAt = (
  code: MistakeCode,
  path: Mistake['path'],
  message: string,
  names?: Pick<Mistake, 'given' | 'known'>,
): Mistake => ({ code, path, message, ...names })

/** Returns a mistake for people, with the name of its route or else its path. */
export function textOf({ path, message, route }: Mistake): string {
  const place = route ? `${route.method} ${route.host ?? ''}${route.path}` : toDotPath([...path])
  return place === '' ? message : `${place}: ${message}`
}

/** Returns a mistake whose message names the path, because the route will be in its place. */
export const withPath = (mistake: Mistake): Mistake => ({ ...mistake, message: textOf(mistake) })

/** Returns a mistake of a part as one of the whole. `name` of the part begins the message. */
export const mistakeWithin = (path: Mistake['path'], name: string, mistake: Mistake): Mistake => ({
  ...mistake,
  path: [...path, ...mistake.path],
  message: `${name}: ${mistake.message}`,
})
