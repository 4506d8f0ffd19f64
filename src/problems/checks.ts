/** The names of the checks that refuse requests, by the code of the refusal: for audit and tests only. */

/** Returns the checks of a code: those of this package, and those of features that others write. */
export type Check<Code extends keyof Checks> = Checks[Code] | OwnCheck

/** A check of a feature of your own, such as `x:tenant_header`. Names without `x:` are reserved. */
export type OwnCheck = `x:${string}`

export interface Checks {
  readonly token_rejected: TokenCheck
  readonly invalid_dpop_proof:
    | TokenCheck
    | 'required'
    | 'missing'
    | 'multiple'
    | 'replay'
    // Claims of the proof, and its key. `jwk_` precedes the member that makes the key unusable.
    | 'htm'
    | 'htu'
    | 'ath'
    | 'nonce'
    | 'jwk'
    | `jwk_${string}`
  readonly ambiguous_credentials: 'authorization' | 'cookie' | 'header' | 'sources'
  readonly cross_origin_request: 'sec_fetch_site' | 'origin' | 'mcp_origin'
  readonly sign_in_required:
    | 'no_session'
    | 'step_up'
    /** The session is valid at another host. */
    | 'host'
    | `token_rejected:${TokenCheck | OwnCheck}`
    | `token_revoked:${RevokedBy}`
  readonly insufficient_user_authentication: 'acr' | 'auth_time' | 'auth_time_old'
  readonly sign_in_refused: SignInCheck
  readonly oauth_refused: OAuthCheck
  readonly ambiguous_path:
    | PathCheck
    | 'host'
    /** The path of the route that the origin could read. */
    | `reads_as ${string}`
    /** The route's `rewrite` gives no target. */
    | 'rewrite'
  readonly malformed_request: RequestCheck
  readonly not_found: 'session' | 'mcp_session' | 'mcp_event' | 'mcp_method'
}

/** The check that a token failed. Never sent to the client: it would help an attacker. */
export type TokenCheck =
  // The Authorization header and the compact serialization (RFC 6750, RFC 7515 section 7.1).
  | 'length'
  | 'authorization_grammar'
  | 'empty'
  | 'segments'
  | 'base64url'
  | 'api_key_checksum'
  // The issuer does not list the source that the token was in.
  | 'source'
  // References: the store has no record of this one.
  | 'reference_unknown'
  // The record says that the secret was revoked or replaced.
  | 'revoked'
  // Tokens that their issuer verifies: it does not know this one, or has ended it (RFC 7662).
  | 'inactive'
  | 'token_type'
  // A bound token without its proof, or a proof that does not match the token (RFC 9449).
  | 'dpop_binding'
  // The protected header (RFC 7515 section 4).
  | 'header_encoding'
  | 'header_json'
  | 'alg'
  | 'crit'
  | 'b64'
  | 'kid'
  | 'typ'
  // The key and the signature.
  | 'kid_unknown'
  | 'kid_missing'
  // Several keys of the set have this `kid` and algorithm.
  | 'kid_duplicate'
  | 'key_algorithm'
  | 'signature'
  // The payload (RFC 7519 section 4, RFC 9068 section 4).
  | 'payload_encoding'
  | 'payload_json'
  | 'iss'
  | 'lifetime'
  | ClaimName
  // Rules of the issuer's configuration: `refuse` and `require`.
  | 'refused_claim'
  | 'required_claim'

/** The claims that the gateway reads. */
export type ClaimName =
  | 'sub'
  | 'aud'
  | 'exp'
  | 'iat'
  | 'nbf'
  | 'jti'
  | 'scope'
  | 'roles'
  | 'tenant'
  | 'plan'
  | 'sid'
  | 'client_id'
  | 'sub_iss'
  | 'cnf'

export type PathCheck =
  | 'blank_segment'
  | 'character'
  | 'control'
  | 'dot_segment'
  | 'double_encoding'
  | 'empty_segment'
  | 'encoded_delimiter'
  | 'encoded_unreserved'
  | 'look_alike'
  | 'not_absolute'
  | 'parameter'
  | 'percent_encoding'
  | 'too_long'
  | 'utf8'

type RequestCheck =
  // The message as it arrived.
  | 'authorization'
  | 'client_gone'
  | 'content_length'
  | 'forwarded_request'
  | 'framing'
  | 'header_bytes'
  | 'header_count'
  | 'target'
  | 'unexpected_body'
  | 'upgrade_with_body'
  | 'websocket_anonymous'
  | 'websocket_handshake'
  | 'websocket_origin'
  | 'websocket_version'
  | 'mcp_method'
  | 'mcp_version'
  // Values.
  | 'consistency_token'
  | 'body_incomplete'
  | 'body_multipart'
  | `body_${JsonCheck}`
  | `${'body' | 'query'}_${TextCheck}`
  | `json_rpc_${JsonRpcCheck}`

export type JsonCheck = 'syntax' | 'duplicate_name' | 'depth' | 'number' | 'prototype_name'

export type TextCheck =
  | 'control'
  | 'encoding'
  | 'length'
  | 'names'
  | 'prototype_name'
  | 'repeated'
  | 'surrogate'

export type JsonRpcCheck =
  | 'ambiguous'
  | 'answer'
  | 'batch'
  | 'error'
  | 'header_method'
  | 'header_name'
  | 'header_version'
  | 'id'
  | 'member'
  | 'message'
  | 'meta'
  | 'method'
  | 'params'
  | 'target'
  | 'tool'
  | 'version'

type SignInCheck =
  | 'acr'
  | `auth_time_${'missing' | 'old' | 'unusable'}`
  | 'browser'
  | 'callback'
  | 'code'
  | 'content_type'
  /** A login that another host of the policy takes over. */
  | 'hand_over'
  | 'hand_over_code'
  | 'hand_over_host'
  | 'no_session'
  | 'provider_unknown'
  | 'query'
  | 'session_unknown'
  | 'state'
  | 'state_unknown'
  | 'state_used'
  /** An error that the provider returned (RFC 6749 section 4.1.2.1). */
  | `provider_${string}`
  | ProviderCheck
  | `user_info_${'missing' | 'refused' | 'signature' | 'sub'}`
  | `id_token_${TokenCheck | OwnCheck | 'azp' | 'missing' | 'nonce'}`
  | `logout_token_${TokenCheck | OwnCheck | 'claims' | 'events' | 'form' | 'nonce' | 'used'}`

/** A response of the provider that `oauth4webapi` does not accept. */
export type ProviderCheck =
  | 'error'
  | 'http_request_forbidden'
  | 'invalid_request'
  | 'invalid_response'
  | 'invalid_server_metadata'
  | 'json_attribute_comparison_failed'
  | 'jwt_claim_comparison_failed'
  | 'jwt_timestamp_check_failed'
  | 'jwt_userinfo_expected'
  | 'key_selection_failed'
  | 'missing_server_metadata'
  | 'request_protocol_forbidden'
  | 'unsupported_operation'

type OAuthCheck =
  // The request and its form.
  | 'content_type'
  | 'form_encoding'
  | 'json'
  | 'parameter_twice'
  | 'query'
  // The client.
  | 'client_assertion_malformed'
  | 'client_assertion_type'
  | 'client_basic'
  | 'client_credential_missing'
  | 'client_id_differs'
  | 'client_methods'
  | 'client_public'
  | ClientCheck
  // The grant.
  | 'api_key'
  | 'cut_off'
  | 'dpop_binding'
  | 'dpop_missing'
  | 'expired'
  | 'grant_type'
  | 'grant_type_missing'
  | 'missing_token'
  | 'resource_malformed'
  | 'resource_not_offered'
  | `scope_${'beyond_roles' | 'empty' | 'exceeded' | 'malformed' | 'not_held' | 'not_offered'}`
  | `scope_${'unbounded' | 'ungranted'}`
  | 'session_tenant'
  | 'target_exceeded'
  | 'token_of_another_client'
  | 'token_without_id'
  | `code_${CodeCheck}`
  | `refresh_token_${RefreshTokenCheck}`
  // Token exchange, and assertions of an identity provider.
  | 'actor_token'
  | 'requested_token_type'
  | `subject_token_${TokenCheck | OwnCheck | 'missing' | 'tenant' | 'type' | `revoked_${RevokedBy}`}`
  | `assertion_${AssertionCheck}`
  // The authorization endpoint and registration.
  | `authorize_${AuthorizationCheck}`
  | `client_${'disabled' | 'unknown' | 'unread' | `document_${DocumentCheck | 'unread'}`}`
  | `consent_${'client' | 'denied' | 'login' | 'of_another_session' | 'unknown'}`
  | 'pushed_dpop_jkt'
  | 'pushed_request_uri'
  | `register_${MetadataCheck}`
  | 'request_uri'
  | 'request_uri_used'

/** What the credential of a client failed: its method, or a check of its assertion. */
export type ClientCheck =
  | 'client_not_public'
  | 'client_secret_basic'
  | 'client_secret_post'
  | 'none'
  | 'private_key_jwt'
  | `private_key_jwt_${ClientAssertionCheck | 'replay'}`

export type ClientAssertionCheck =
  | 'type'
  | 'key'
  | 'signature'
  | 'claims'
  | 'issuer'
  | 'audience'
  | 'expired'
  | 'lifetime'
  | 'future'

export type CodeCheck =
  | 'cut_off'
  | 'dpop_binding'
  | 'missing'
  | 'of_another_client'
  | 'redirect_uri'
  | 'replayed'
  | 'tenant'
  | 'unknown'
  | 'verifier'

export type RefreshTokenCheck =
  | 'cut_off'
  | 'dpop_binding'
  | 'ended'
  | 'expired'
  | 'malformed'
  | 'missing'
  | 'of_another_client'
  | 'reused'
  | 'unknown'

export type AssertionCheck =
  | TokenCheck
  | OwnCheck
  | 'client'
  | 'missing'
  | 'replay'
  | 'resource'
  | `revoked_${RevokedBy}`

export type AuthorizationCheck =
  | 'client_id'
  | 'code_challenge'
  | 'acr_values'
  | 'claims'
  | 'code_challenge_method'
  | 'consent'
  | 'dpop_jkt'
  | 'grant'
  | 'length'
  | 'login'
  | 'login_age'
  | 'login_unmet'
  | 'max_age'
  | 'prompt'
  | 'redirect_uri'
  | 'request'
  | 'request_uri'
  | 'response_mode'
  | 'response_type'
  | 'state'
  | 'tenant'

/** Members of the metadata of a client that have rules. */
export type MetadataMember =
  | 'client_id'
  | 'client_name'
  | 'redirect_uris'
  | 'grant_types'
  | 'response_types'
  | 'token_endpoint_auth_method'
  | 'dpop_bound_access_tokens'
  | 'client_secret'

/** What makes the metadata of a client unusable: one of its members, or that it is no object. */
export type MetadataCheck = 'form' | MetadataMember

/** Why a metadata document gives no client. */
export type DocumentCheck =
  | MetadataCheck
  | 'url'
  | 'unreachable'
  | 'status'
  | 'redirect'
  | 'content_type'
  | 'length'
  | 'json'
  | 'client_id'
  | 'authentication'

/** What revoked a token: a revocation of the token itself, or a cutoff that covers it. */
export type RevokedBy = 'token' | 'session' | 'subject' | 'client' | 'tenant'
