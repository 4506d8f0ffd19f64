/** The types whose comments describe the fields of the JSON Schemas, by the name of the schema. */
import type { RelationModelJson } from '../../src/access/relations/model-schema.ts'
import type { ClientInput } from '../../src/features/authorization-server/schemas/client-input.ts'
import type { SignInSettings } from '../../src/features/sign-in/schema.ts'
import type { IssuerClientInput } from '../../src/validators/issuer-client-input.ts'
import type { IssuerInput } from '../../src/validators/issuer-input.ts'

export interface Described {
  readonly issuers: readonly IssuerInput[]
  readonly clients: readonly ClientInput[]
  readonly 'issuer-clients': readonly SignInClient[]
  readonly 'relation-model': RelationModelJson
}

interface SignInClient extends IssuerClientInput {
  /** Users sign in with this client. Needs `signIn()` in the policy. Default none. */
  readonly signIn?: SignInSettings | undefined
}
