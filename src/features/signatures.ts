/** Attack signatures: `import { signatures } from 'portcullis/signatures'`. */

import type { SignatureJudge } from '../inspection/judge.ts'
import { type SignaturesDefinition, signaturesSchema } from '../inspection/signatures/definition.ts'
import { createSignatureJudge } from '../inspection/signatures/judge.ts'
import { configured } from '../validators/configuration.ts'

/** Creates the attack signatures of a route, for its field `inspect.signatures`. */
export function signatures(settings: SignaturesDefinition = {}): SignatureJudge {
  configured('The policy', signaturesSchema, settings, ['inspect', 'signatures'])
  return createSignatureJudge(settings)
}
