/** What the authorization code flow adds to the metadata (RFC 8414, RFC 9126, RFC 9207). */

import { authorizationServerMetadata } from '../authorization-server/metadata.ts'
import { ID_JAG_PROFILE, JWT_BEARER_GRANT } from './identity-assertion-grant.ts'

export interface CodeFlowMetadata {
  readonly issuer: string
  readonly authorizationPath: string
  readonly pushedPath: string
  /** Undefined: clients cannot register themselves. */
  readonly registrationPath: string | undefined
  readonly acceptsDocuments: boolean
  readonly scopes: readonly string[]
  /** Whether identity assertions are accepted. */
  readonly acceptsAssertions: boolean
  /** Whether there can be clients without a credential. */
  readonly acceptsPublic: boolean
}

/** Returns the members that replace those of `authorizationServerMetadata` or are added to them. */
export function codeFlowMetadata(flow: CodeFlowMetadata) {
  const { issuer, registrationPath, scopes } = flow
  const own = authorizationServerMetadata(issuer)
  return {
    authorization_endpoint: issuer + flow.authorizationPath,
    pushed_authorization_request_endpoint: issuer + flow.pushedPath,
    ...(registrationPath !== undefined && { registration_endpoint: issuer + registrationPath }),
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: flow.acceptsDocuments,
    ...(scopes.length > 0 && { scopes_supported: scopes }),
    grant_types_supported: [
      ...own.grant_types_supported,
      'authorization_code',
      ...(flow.acceptsAssertions ? [JWT_BEARER_GRANT] : []),
    ],
    ...(flow.acceptsAssertions && { authorization_grant_profiles_supported: [ID_JAG_PROFILE] }),
    ...(flow.acceptsPublic && {
      token_endpoint_auth_methods_supported: [...own.token_endpoint_auth_methods_supported, 'none'],
      revocation_endpoint_auth_methods_supported: [
        ...own.revocation_endpoint_auth_methods_supported,
        'none',
      ],
    }),
  }
}
