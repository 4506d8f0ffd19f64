/** The types of what users write are those that the schemas parse. The compiler checks it: there is nothing to run. */
import type * as z from 'zod/mini'
import type { configuredClients } from '../../src/features/authorization-server/schemas/client.ts'
import type { ClientInput } from '../../src/features/authorization-server/schemas/client-input.ts'
import type { issuer } from '../../src/validators/issuer.ts'
import type { IssuerFields } from '../../src/validators/issuer-input.ts'
import type { TokenSource, tokenSources } from '../../src/validators/token-source.ts'

type DeepReadonly<Value> = Value extends object
  ? { readonly [Name in keyof Value]: DeepReadonly<Value[Name]> }
  : Value
type Same<One, Other> = [DeepReadonly<One>] extends [Other]
  ? [Other] extends [DeepReadonly<One>]
    ? true
    : 'the schema does not accept every value of the type'
  : 'the type does not accept every value of the schema'

const agreements: readonly true[] = [
  true satisfies Same<Omit<z.input<typeof issuer>, 'jwks'>, Omit<IssuerFields, 'jwks'>>,
  true satisfies Same<z.input<typeof tokenSources>[number], TokenSource>,
  true satisfies Same<
    Omit<z.input<typeof configuredClients>[number], 'jwks'>,
    Omit<ClientInput, 'jwks'>
  >,
]
void agreements
