/**
 * Names of request headers, collected from the documentation of software that reads them. Nothing
 * here is imported from the gateway.
 */

const words = (text: string): readonly string[] => text.trim().split(/\s+/)

/** Names that clients cannot send to an origin, by the meaning that a server gives them. */
export const TRUSTED_HEADERS = {
  'the gateway itself': words(`
    X-Auth-Subject X-Auth-Issuer X-Auth-Client X-Auth-Tenant X-Auth-Roles X-Auth-Scope
    X-Auth-Assertion X-Auth-Anything-Else X-Consistency-Token`),
  'the caller': words(`
    X-Auth X-Auth-User X-Auth-Request-User X-Auth-Request-Email X-Auth-Request-Groups
    X-Auth-Request-Access-Token X-Auth-Username X-Auth-Token-Claims Auth-User Auth-Type
    X-Authenticated-User X-Authenticated-UserId X-Authenticated-Groups X-Authenticated-Scope
    X-Authentication-Id X-Authorization X-Authz-User X-Authn-User
    Remote-User Remote-Groups Remote-Email Remote-Name X-Remote-User X-Remote-User-Id X-Remote-Group
    X-Remote-Extra-Scopes X-Remote-Groups Impersonate-User Impersonate-Group Impersonate-Uid
    Impersonate-Extra-Scopes X-User X-User-Id X-User-Name X-User-Email X-User-Roles X-Userid
    X-Username X-Userinfo X-User-Info User-Id Userinfo X-Email X-Groups X-Group X-Roles X-Role
    X-Permissions X-Claims-Sub X-Subject X-Principal X-Identity X-Internal-User
    X-Consumer-Id X-Consumer-Custom-Id X-Consumer-Username X-Consumer-Groups X-Anonymous-Consumer
    X-Credential-Identifier X-Credential-Username
    X-Goog-Authenticated-User-Email X-Goog-Authenticated-User-Id X-Goog-IAP-JWT-Assertion
    X-Amzn-Oidc-Data X-Amzn-Oidc-Identity X-Amzn-Oidc-Accesstoken X-Amzn-Lattice-Identity
    X-Amzn-Vpc-Id X-Amzn-Remapped-Authorization X-Amzn-Waf-Verified
    X-MS-Client-Principal X-MS-Client-Principal-Id X-MS-Client-Principal-Name
    X-MS-Client-Principal-Idp X-MS-Token-AAD-Id-Token X-MS-Token-AAD-Access-Token
    X-Endpoint-API-UserInfo X-Google-Endpoint-API-UserInfo X-Apigateway-Api-Userinfo
    X-Jwt-Payload X-Jwt-Assertion X-Jwt-Claim-Sub X-Token-Subject X-Token-Payload X-Id-Token
    X-Access-Token X-Vouch-User X-Vouch-Idp-Claims-Email X-Vouch-Idp-AccessToken
    X-Pomerium-Jwt-Assertion X-Pomerium-Claim-Email X-Authentik-Username X-Authentik-Groups
    X-Authentik-Jwt X-Authelia-User X-WEBAUTH-USER X-WEBAUTH-EMAIL X-WEBAUTH-ROLE
    Tailscale-User-Login Tailscale-User-Name Tailscale-User-Profile-Pic Tailscale-App-Capabilities
    Cf-Access-Authenticated-User-Email Cf-Access-Jwt-Assertion Cf-Access-Client-Id
    OIDC-Claim-Sub OIDC-Access-Token X-Oidc-User X-Oauth-User X-OAuth-Scopes X-Saml-Subject
    X-Forwarded-User X-Forwarded-Email X-Forwarded-Groups X-Forwarded-Preferred-Username
    X-Forwarded-Access-Token X-RH-Identity X-Scope-OrgID X-Replit-User-Id X-Replit-User-Roles
    Ngrok-Auth-User-Email X-Grafana-User X-Proxy-User X-Sso-User SM-User SM-Universalid SMUSER
    IV-User IV-Groups IV-Creds OAM-Remote-User OSSO-User-Dn Shib-Identity-Provider Mellon-NameId eppn
    X-Appengine-User-Email X-Appengine-Inbound-Appid X-Appengine-Cron X-Appengine-User-Ip
    X-Cloudtasks-QueueName X-Cloudscheduler X-Serverless-Authorization L5d-Client-Id
    Dapr-Caller-App-Id Entitlement X-Entitlements X-Mail X-Credentials X-Authorized-By X-Authorised-By
    X-Internal-Request X-Endpoint-Api-Consumer-Number X-Apigateway-Api-Consumer-Type
    X-Amzn-Lattice-Network X-Amzn-Apigateway-Api-Id X-Amzn-Source-Vpc Osso-Subscriber Shib-Session-Id Sec-Provided-Token-Binding-Id Sec-Referred-Token-Binding-Id`),
  'the caller for whom a credential of the gateway acts': words(`
    X-Hasura-Role X-Hasura-User-Id X-Hasura-Org-Id Sudo X-Sudo Run-As X-Run-As Act-As X-Act-As
    On-Behalf-Of X-On-Behalf-Of X-DocuSign-Act-On-Behalf X-DocuSign-Act-As-User X-Redmine-Switch-User
    Es-Security-Runas-User X-Security-Runas As-User Assume-User Api-Username MSCRMCallerID CallerObjectId`),
  'the client certificate': words(`
    Client-Cert Client-Cert-Chain X-ARR-ClientCert X-ARR-SSL X-Client-Cert X-Client-Cert-Dn
    X-Client-Certificate X-Forwarded-Client-Cert X-Forwarded-Tls-Client-Cert
    X-Forwarded-Tls-Client-Cert-Info X-Amzn-Mtls-Clientcert X-Amzn-Mtls-Clientcert-Subject
    X-Amzn-Mtls-Clientcert-Leaf X-Amzn-Tls-Version SSL-Client-Cert SSL-Client-Verify
    SSL-Client-Subject-Dn SSL-Client-S-Dn SSL-Client-Issuer-Dn X-SSL-Cert X-SSL-Client-Cert
    X-SSL-Client-Verify X-SSL-Client-CN X-SSL-Client-SHA1 X-SSL-Issuer X-Client-DN X-Client-Verify
    X-Client-Verified X-Client-Subject X-Client-Issuer X-TLS-Client-Cert X-TLS-Client-Verified
    X-Mtls-Subject Cf-Client-Cert-Der-Base64 WL-Proxy-Client-Cert Fastly-Client-Cert
    X-ClientCert X-ClientCertificate X-Client-Certs X-Client-Serial WL-Proxy-Client-Keysize`),
  'the address': words(`
    Forwarded Forwarded-For Forwarded-For-Ip X-Forwarded X-Forwarded-For X-Forwarded-By
    X-Forwarded-For-Original X-Forwarded-Port X-Forward-For X-Forwarder-For X-Real-IP X-Real-Port
    X-Real-Client-IP Real-IP True-Client-IP X-True-Client-IP Client-IP X-Client-IP X-Client-Port
    X-Cluster-Client-IP Cluster-Client-IP X-Remote-IP X-Remote-Addr Remote-Addr Remote-Host
    X-Originating-IP X-Original-Remote-Addr X-Original-Forwarded-For X-Source-IP X-IP X-ProxyUser-Ip
    X-Custom-IP-Authorization WL-Proxy-Client-IP Proxy-Client-IP Proxy-Remote-Addr
    Fastly-Client-IP Fastly-Client Fastly-FF Fly-Client-IP Fly-Region Fly-Forwarded-Port
    CF-Connecting-IP CF-Connecting-IPv6 CF-Pseudo-IPv4 CF-IPCountry CF-Worker CF-Ray
    X-Azure-ClientIP X-Azure-SocketIP X-Azure-FDID X-Azure-Ref X-FD-HealthProbe
    X-Envoy-External-Address X-Envoy-Internal X-Envoy-Peer-Metadata L5d-Remote-Ip
    Ali-CDN-Real-IP Cdn-Src-Ip Akamai-Client-IP X-Akamai-Edgescape Incap-Client-IP X-Sucuri-ClientIP
    CloudFront-Viewer-Address X-NF-Client-Connection-IP X-Vercel-Forwarded-For X-Vercel-Proxied-For
    X-Vercel-IP-Country IV-Remote-Address X-ClientIP X-RealIP X-RemoteIP X-SourceIP X-UserIP X-Client-IPs
    X-Client-IPv4 X-Client-IPv6 X-Peer-Addr Client-Addr X-Client-Address X-ARR-LOG-ID X-NF-Account-Id
    X-Sucuri-Country X-Istio-Attributes`),
  'another method, path, host or scheme': words(`
    X-HTTP-Method X-HTTP-Method-Override X-Method-Override X-Method X-HttpMethod-Override
    X-HTTP-Host-Override X-HTTP-Path-Override X-Host X-Host-Override X-Host-Name X-Backend-Host
    X-Forwarded-Host X-Forwarded-Server X-Forwarded-Proto X-Forwarded-Protocol X-Forwarded-Scheme
    X-Forwarded-Ssl X-Forwarded-Uri X-Forwarded-Path X-Forwarded-Prefix X-Forwarded-Method
    X-Original-URL X-Original-URI X-Original-Path X-Original-Host X-Original-Method X-Override-URL
    X-Rewrite-URL X-Rewrite-URI X-Rewritten-Url X-Path-Override X-URL-Override X-Envoy-Original-Path
    X-Envoy-Decorator-Operation X-Envoy-Retry-On X-Script-Name Script-Name X-Proxy-URL Base-Url
    X-Base-Path Request-Uri X-Request-Uri X-Ingress-Path X-WAWS-Unencoded-URL X-Http-DestinationUrl
    Uri Url X-Url X-Path-Info X-Sendfile-Type X-Accel-Mapping X-Accel-Redirect Proxy Proxy-Host
    X-Scheme X-Url-Scheme X-Proto Https Front-End-Https Fastly-SSL Disguised-Host WAS-Default-Hostname
    Server-Name Server-Port X-Context-Path X-Root-Url
    X-Middleware-Subrequest X-Middleware-Rewrite X-Middleware-Next X-Middleware-Set-Cookie
    X-Middleware-Override-Headers X-Middleware-Invoke X-Nextjs-Rewrite X-Nextjs-Redirect
    X-Invoke-Path X-Invoke-Query X-Invoke-Output X-Matched-Path X-Now-Route-Matches X-Astro-Path
    X-Astro-Locals L5d-Dst-Override Dapr-App-Id`),
  'credentials of this hop': words(`
    Proxy-Authorization Authorization DPoP Cookie Cookie2 Set-Cookie`),
} as const

/** Names that clients send and origins need. */
export const ORDINARY_HEADERS = {
  'HTTP and browsers': words(`
    Accept Accept-Charset Accept-Encoding Accept-Language Accept-Datetime Accept-Patch
    Access-Control-Request-Headers Access-Control-Request-Method Cache-Control Content-Digest
    Content-Disposition Content-Encoding Content-Language Content-Location Content-MD5 Content-Range
    Content-Type Date Depth Destination DNT Digest Downlink Early-Data ECT From HTTP-Referer If If-Match
    If-Modified-Since If-None-Match If-Range If-Unmodified-Since Last-Event-ID Lock-Token
    Max-Forwards Origin Overwrite Pragma Prefer Priority Purpose Range Referer Repr-Digest RTT
    Save-Data Sec-CH-UA Sec-CH-UA-Platform Sec-Fetch-Dest Sec-Fetch-Mode Sec-Fetch-Site
    Sec-Fetch-User Sec-GPC Sec-Purpose Service-Worker Signature Signature-Input SOAPAction Timeout
    Upgrade-Insecure-Requests User-Agent Viewport-Width Want-Digest X-Purpose`),
  applications: words(`
    Idempotency-Key X-Idempotency-Key X-API-Key Api-Key X-Api-Version X-CSRF-Token X-CSRFToken
    X-XSRF-Token X-Requested-With X-Requested-By X-Request-Start X-Request-Timestamp X-Correlation-Id
    X-Session-Id X-Tenant-Id X-Account-Id X-Org-Id X-Workspace-Id X-Device-Id X-Device-Token
    X-Client-Id X-Client-Version X-Client-Name X-Client-Data X-App-Version X-Locale X-Timezone
    X-Total-Count X-Page-Size X-Signature X-Timestamp X-Nonce X-Captcha-Token X-Feature-Flags
    X-Custom X-User-Agent X-Grpc-Web Grpc-Timeout Grpc-Accept-Encoding Grpc-Metadata-Locale
    Tus-Resumable Upload-Offset Upload-Metadata X-Upload-Content-Type HX-Request HX-Current-URL
    HX-Target Turbo-Frame X-Inertia X-Inertia-Version X-Livewire RSC Next-Action Next-Url
    Next-Router-State-Tree X-Nextjs-Data X-Middleware-Prefetch Mcp-Session-Id Mcp-Protocol-Version
    Apollo-Require-Preflight X-Apollo-Operation-Name OpenAI-Organization Anthropic-Version
    X-Stainless-Lang X-Author X-Authors`),
  'tracing and webhooks': words(`
    Baggage B3 X-B3-TraceId X-B3-SpanId X-B3-Sampled Uber-Trace-Id X-Cloud-Trace-Context
    X-Amzn-Trace-Id X-Datadog-Trace-Id Sentry-Trace Request-Id CE-Id CE-Source CE-Subject CE-Type
    X-Hub-Signature-256 X-GitHub-Event X-GitHub-Delivery X-Gitlab-Token Stripe-Signature
    X-Slack-Signature X-Slack-Request-Timestamp X-Shopify-Hmac-Sha256 X-Shopify-Shop-Domain
    X-Twilio-Signature Webhook-Id Webhook-Signature Svix-Id`),
  'clients of cloud services': words(`
    X-Amz-Date X-Amz-Content-Sha256 X-Amz-Security-Token X-Amz-Target X-Amz-Acl X-Amz-Copy-Source
    X-Amz-User-Agent X-Amz-Meta-User X-Amz-Server-Side-Encryption Amz-Sdk-Invocation-Id
    Amz-Sdk-Request X-Amzn-RequestId X-Goog-Api-Client X-Goog-Api-Key X-Goog-User-Project
    X-Goog-Request-Params X-Goog-FieldMask X-Goog-Upload-Protocol X-Goog-Meta-User
    X-MS-Version X-MS-Date X-MS-Client-Request-Id X-MS-Blob-Type X-MS-Meta-Host`),
} as const

export const allOf = (lists: Readonly<Record<string, readonly string[]>>): readonly string[] =>
  Object.values(lists).flat()

/** Returns the spellings of a name that some server reads as that name, without duplicates. */
export function spellingsOf(name: string): readonly string[] {
  return [
    ...new Set([
      name,
      name.toLowerCase(),
      name.toUpperCase(),
      name.replaceAll('-', '_'),
      name.replace('-', '_'),
      name.replaceAll('-', '.'),
      name.replaceAll('-', '_').toUpperCase(),
      `HTTP_${name.replaceAll('-', '_').toUpperCase()}`,
      `Grpc-Metadata-${name}`,
    ]),
  ]
}
