/** Names of keys that more than one feature uses. */

/** Index of the API keys: a sorted set of record ids by time of creation. */
export const API_KEYS_INDEX = 'pc:api-keys'

/**
 * Expiry of the API keys: a sorted set of record ids. The score is the second in which the key
 * expires, or infinite for a key without expiry.
 */
export const API_KEY_ENDS_KEY = `${API_KEYS_INDEX}:ends`
