/** Attack signatures: `import { signatures } from 'portcullis/signatures'`. */

import type { SignatureJudge } from '../../inspection/judge.ts'
import { parseConfiguration } from '../../validators/configuration.ts'
import { type SignaturesDefinition, signaturesSchema } from './definition.ts'
import { createSignatureJudge } from './judge.ts'

/** Creates the attack signatures of a route, for its field `inspect.signatures`. */
export function signatures(settings: SignaturesDefinition = {}): SignatureJudge {
  parseConfiguration('The policy', signaturesSchema, settings, ['inspect', 'signatures'])
  return createSignatureJudge(settings)
}
