/** Parts that many schemas share. */
import * as z from 'zod/mini'
import { superRefine } from './checks.ts'

/** Typed as a number: zod 4.0 does not export the type of `z.int()`. */
export const integer = (): z.ZodMiniNumber<number> => z.int()

export const wholeNumber = (min: number, max: number) =>
  integer().check(z.minimum(min), z.maximum(max))

export const nonEmpty = z.string().check(z.minLength(1))

/** A name that is compared exactly, without white space around it. */
export const trimmed = z.string().check(z.trim(), z.minLength(1))

/** A scope for another server, with one space between its names: some refuse an empty one (RFC 6749 section 3.3). */
export const requestedScope = () =>
  z.string().check(
    z.overwrite((scope) => scope.split(/ +/).filter(Boolean).join(' ')),
    z.minLength(1),
    z.maxLength(1_024),
  )

export const text = (maxChars: number) => nonEmpty.check(z.maxLength(maxChars))

export const converted = <Schema extends z.core.$ZodType, Result>(
  schema: Schema,
  convert: (value: z.output<Schema>) => Result,
) => z.pipe(schema, z.transform(convert))

/** Parses `shorthand` as `meaning`. Not a union, because its errors would not name the field. */
export const withShorthand = <Schema extends z.core.$ZodType>(
  shorthand: unknown,
  meaning: unknown,
  schema: Schema,
) =>
  z.pipe(
    z.transform((value) => (value === shorthand ? meaning : value)),
    schema,
  )

/** Refuses a list in which two items have the same `member`. */
export const unique = <Member extends string>(member: Member, message: string) =>
  superRefine<readonly Readonly<Record<Member, unknown>>[]>((list, context) => {
    const seen = new Set<unknown>()
    for (const [index, { [member]: value }] of list.entries()) {
      if (seen.has(value)) context.addIssue({ code: 'custom', path: [index, member], message })
      seen.add(value)
    }
  })

/** Parses a query parameter of digits that match `pattern`. Without the parameter: `otherwise`. */
export const digits = (pattern: RegExp, message: string, otherwise: number) =>
  converted(
    z.optional(converted(z.string().check(z.regex(pattern, message)), Number)),
    (number) => number ?? otherwise,
  )

/** An optional member: null means that it is absent. */
export const absentIfNull = <Schema extends z.core.$ZodType>(schema: Schema) =>
  converted(
    z.nullish(schema),
    (value): NonNullable<z.output<Schema>> | undefined => value ?? undefined,
  )

type AllOptional<Shape extends z.core.$ZodShape> = {
  [Name in keyof Shape]: z.ZodMiniOptional<Shape[Name]>
}

/** Returns a strict object whose members are all optional. `z.partial` is larger: it changes any object. */
export const partial = <Shape extends z.core.$ZodShape>(
  shape: Shape,
  params?: Parameters<typeof z.strictObject>[1],
) =>
  z.strictObject(
    Object.fromEntries(
      Object.entries(shape).map(([name, member]) => [name, z.optional(member)]),
    ) as AllOptional<Shape>,
    params,
  )

/** Returns a strict object with the members of another one, without its checks, and more. */
export const extended = <Base extends z.core.$ZodShape, More extends z.core.$ZodShape>(
  { shape }: z.ZodMiniObject<Base, z.core.$strict>,
  more: More,
) => z.strictObject({ ...shape, ...more } as Omit<Base, keyof More> & More)
