/** Attack signatures: `import { signatures } from 'portcullis/signatures'`. */
import { toDotPath } from 'zod/v4/core'
import { Misconfigured } from '../errors.ts'
import { type SignaturesDefinition, signaturesSchema } from '../inspection/signatures/definition.ts'
import { createSignatureJudge, type SignatureJudge } from '../inspection/signatures/judge.ts'

/** Creates the attack signatures of a route, for its field `inspect.signatures`. */
export function signatures(settings: SignaturesDefinition = {}): SignatureJudge {
  const parsed = signaturesSchema.safeParse(settings)
  if (parsed.success) return createSignatureJudge(settings)
  throw new Misconfigured(
    'The policy',
    parsed.error.issues.map(
      ({ path, message }) => `inspect.${toDotPath(['signatures', ...path])}: ${message}`,
    ),
  )
}
