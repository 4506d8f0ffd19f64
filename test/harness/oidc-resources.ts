/** Resources (RFC 8707) of the provider of tests, each with a form of its access tokens. */
export const JWT_RESOURCE = 'https://api.example.com'
export const OPAQUE_RESOURCE = 'https://opaque.example.com'
export const OTHER_RESOURCE = 'https://other.example.com'
